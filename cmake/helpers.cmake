# weft_library(NAME SOURCES a.c b.c LINKS x y): one folder's static archive. LINKS are the only
# folders it may use: the table of docs/architecture.md.
function(weft_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC project_options project_sanitizers ${A_LINKS} PRIVATE ${A_PRIVATE_LINKS})
endfunction()

# weft_unit_test(NAME SOURCES test_x.c LINKS x): a cmocka program, one ctest entry.
function(weft_unit_test name)
  cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  add_executable(test_${name} ${A_SOURCES})
  target_link_libraries(test_${name} PRIVATE ${A_LINKS} PkgConfig::CMOCKA)
  add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "unit;${A_LABELS}" TIMEOUT ${A_TIMEOUT})
endfunction()

# weft_fuzz(NAME SOURCES fuzz_x.c LINKS x): a libFuzzer target fuzz_NAME; its seeds are in
# test/fuzz/corpus/NAME. Without WEFT_FUZZ it is built with a plain main that replays the seeds.
add_custom_target(fuzzers)
function(weft_fuzz name)
  cmake_parse_arguments(A "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(fuzz_${name} ${A_SOURCES})
  add_dependencies(fuzzers fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE ${A_LINKS})
  if(WEFT_FUZZ)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/test/fuzz/replay_main.c)
    add_test(NAME fuzz_${name}_corpus COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/test/fuzz/corpus/${name})
    set_tests_properties(fuzz_${name}_corpus PROPERTIES LABELS "fuzz-corpus")
  endif()
endfunction()
