# What every target of ours is compiled with.
add_library(project_options INTERFACE)
target_include_directories(project_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(project_options INTERFACE _GNU_SOURCE WEFT_VERSION="${PROJECT_VERSION}")
target_compile_options(project_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -Wno-sign-conversion -fno-common
  $<$<BOOL:${WEFT_WERROR}>:-Werror>
  $<$<C_COMPILER_ID:Clang>:-Wno-gnu-zero-variadic-macro-arguments>)
if(CMAKE_BUILD_TYPE STREQUAL "Release" OR CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  target_compile_options(project_options INTERFACE -UNDEBUG -fstack-protector-strong -fstack-clash-protection
    -D_FORTIFY_SOURCE=2 -fPIE)
  target_link_options(project_options INTERFACE -pie -Wl,-z,relro,-z,now,-z,noexecstack)
endif()

add_library(project_sanitizers INTERFACE)
if(WEFT_SANITIZE)
  target_compile_options(project_sanitizers INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(project_sanitizers INTERFACE -fsanitize=${WEFT_SANITIZE})
endif()
