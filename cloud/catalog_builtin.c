/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The catalogue inside the program: AWS us-east-1 as of 2026-07-20.
 *
 * Facts only: every type with NVIDIA GPUs and the mainstream CPU families. Capacity and GPUs are
 * those of EC2's DescribeInstanceTypes, allocatable those of Karpenter's documentation, prices the
 * on-demand list prices; spot prices are derived from the Spot Instance Advisor's savings and are
 * an estimate for the region, the same in each zone. `weft plan --catalog` takes better ones. */

#include <assert.h>
#include <ctype.h>

#include "base/num.h"
#include "cloud/catalog_build.h"

#define AS_OF INT64_C(1784505600) /* 2026-07-20T00:00:00Z */
#define REGION "us-east-1"
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

enum arch { AMD64, ARM64 };
enum cpu_maker { CPU_INTEL, CPU_AMD, CPU_AWS };

struct row {
    const char *name;
    enum arch arch;
    enum cpu_maker cpu;
    int32_t vcpu, mem_mib;
    int32_t alloc_cpu_milli, alloc_mem_mib, pods;
    int32_t nvme_gb;
    const char *gpu; /* "": none */
    int32_t gpus, gpu_mem_mib;
    int32_t price_uusd_h;
    int8_t spot_savings;  /* percent off; -1: no spot market known */
    int8_t interruptions; /* the advisor's bucket: 0 below 5 % a month … 4 above 20 % */
    const char *zones;
};

/* clang-format off */
static const struct row rows[] = {
    {"c5.12xlarge", AMD64, CPU_INTEL, 48, 98304, 47810, 88002, 234, 0, "", 0, 0, 2040000, 67, 1, "abcdf"},
    {"c5.18xlarge", AMD64, CPU_INTEL, 72, 147456, 71750, 127934, 737, 0, "", 0, 0, 3060000, 72, 2, "abcdf"},
    {"c5.24xlarge", AMD64, CPU_INTEL, 96, 196608, 95690, 173400, 737, 0, "", 0, 0, 4080000, 73, 1, "abcdf"},
    {"c5.2xlarge", AMD64, CPU_INTEL, 8, 16384, 7910, 14162, 58, 0, "", 0, 0, 340000, 56, 1, "abcdf"},
    {"c5.4xlarge", AMD64, CPU_INTEL, 16, 32768, 15890, 27381, 234, 0, "", 0, 0, 680000, 66, 4, "abcdf"},
    {"c5.9xlarge", AMD64, CPU_INTEL, 36, 73728, 35840, 65269, 234, 0, "", 0, 0, 1530000, 58, 0, "abcdf"},
    {"c5.large", AMD64, CPU_INTEL, 2, 4096, 1930, 3114, 29, 0, "", 0, 0, 85000, 59, 0, "abcdf"},
    {"c5.xlarge", AMD64, CPU_INTEL, 4, 8192, 3920, 6584, 58, 0, "", 0, 0, 170000, 56, 0, "abcdf"},
    {"c6a.12xlarge", AMD64, CPU_AMD, 48, 98304, 47810, 88002, 234, 0, "", 0, 0, 1836000, 64, 1, "abcdf"},
    {"c6a.16xlarge", AMD64, CPU_AMD, 64, 131072, 63770, 112779, 737, 0, "", 0, 0, 2448000, 62, 4, "abcdf"},
    {"c6a.24xlarge", AMD64, CPU_AMD, 96, 196608, 95690, 173400, 737, 0, "", 0, 0, 3672000, 67, 4, "abcdf"},
    {"c6a.2xlarge", AMD64, CPU_AMD, 8, 16384, 7910, 14162, 58, 0, "", 0, 0, 306000, 57, 3, "abcdf"},
    {"c6a.32xlarge", AMD64, CPU_AMD, 128, 262144, 127610, 234021, 737, 0, "", 0, 0, 4896000, 72, 3, "abcdf"},
    {"c6a.48xlarge", AMD64, CPU_AMD, 192, 393216, 191450, 355262, 737, 0, "", 0, 0, 7344000, 73, 3, "abcdf"},
    {"c6a.4xlarge", AMD64, CPU_AMD, 16, 32768, 15890, 27381, 234, 0, "", 0, 0, 612000, 56, 3, "abcdf"},
    {"c6a.8xlarge", AMD64, CPU_AMD, 32, 65536, 31850, 57691, 234, 0, "", 0, 0, 1224000, 61, 3, "abcdf"},
    {"c6a.large", AMD64, CPU_AMD, 2, 4096, 1930, 3114, 29, 0, "", 0, 0, 76500, 62, 3, "abcdf"},
    {"c6a.xlarge", AMD64, CPU_AMD, 4, 8192, 3920, 6584, 58, 0, "", 0, 0, 153000, 59, 3, "abcdf"},
    {"c6i.12xlarge", AMD64, CPU_INTEL, 48, 98304, 47810, 88002, 234, 0, "", 0, 0, 2040000, 67, 1, "abcdf"},
    {"c6i.16xlarge", AMD64, CPU_INTEL, 64, 131072, 63770, 112779, 737, 0, "", 0, 0, 2720000, 67, 1, "abcdf"},
    {"c6i.24xlarge", AMD64, CPU_INTEL, 96, 196608, 95690, 173400, 737, 0, "", 0, 0, 4080000, 69, 1, "abcdf"},
    {"c6i.2xlarge", AMD64, CPU_INTEL, 8, 16384, 7910, 14162, 58, 0, "", 0, 0, 340000, 51, 1, "abcdf"},
    {"c6i.32xlarge", AMD64, CPU_INTEL, 128, 262144, 127610, 234021, 737, 0, "", 0, 0, 5440000, 74, 2, "abcdf"},
    {"c6i.4xlarge", AMD64, CPU_INTEL, 16, 32768, 15890, 27381, 234, 0, "", 0, 0, 680000, 57, 3, "abcdf"},
    {"c6i.8xlarge", AMD64, CPU_INTEL, 32, 65536, 31850, 57691, 234, 0, "", 0, 0, 1360000, 61, 1, "abcdf"},
    {"c6i.large", AMD64, CPU_INTEL, 2, 4096, 1930, 3114, 29, 0, "", 0, 0, 85000, 63, 1, "abcdf"},
    {"c6i.xlarge", AMD64, CPU_INTEL, 4, 8192, 3920, 6584, 58, 0, "", 0, 0, 170000, 60, 3, "abcdf"},
    {"c7g.12xlarge", ARM64, CPU_AWS, 48, 98304, 47810, 87943, 234, 0, "", 0, 0, 1740000, 70, 1, "abcdf"},
    {"c7g.16xlarge", ARM64, CPU_AWS, 64, 131072, 63770, 112720, 737, 0, "", 0, 0, 2320000, 74, 0, "abcdf"},
    {"c7g.2xlarge", ARM64, CPU_AWS, 8, 16384, 7910, 14103, 58, 0, "", 0, 0, 290000, 69, 0, "abcdf"},
    {"c7g.4xlarge", ARM64, CPU_AWS, 16, 32768, 15890, 27322, 234, 0, "", 0, 0, 580000, 71, 0, "abcdf"},
    {"c7g.8xlarge", ARM64, CPU_AWS, 32, 65536, 31850, 57632, 234, 0, "", 0, 0, 1160000, 73, 0, "abcdf"},
    {"c7g.large", ARM64, CPU_AWS, 2, 4096, 1930, 3055, 29, 0, "", 0, 0, 72500, 49, 0, "abcdf"},
    {"c7g.medium", ARM64, CPU_AWS, 1, 2048, 940, 1392, 8, 0, "", 0, 0, 36300, 64, 0, "abcdf"},
    {"c7g.xlarge", ARM64, CPU_AWS, 4, 8192, 3920, 6525, 58, 0, "", 0, 0, 145000, 62, 0, "abcdf"},
    {"c7i.12xlarge", AMD64, CPU_INTEL, 48, 98304, 47810, 88002, 234, 0, "", 0, 0, 2142000, 59, 2, "abcdf"},
    {"c7i.16xlarge", AMD64, CPU_INTEL, 64, 131072, 63770, 112779, 737, 0, "", 0, 0, 2856000, 63, 1, "abcdf"},
    {"c7i.24xlarge", AMD64, CPU_INTEL, 96, 196608, 95690, 173400, 737, 0, "", 0, 0, 4284000, 60, 0, "abcdf"},
    {"c7i.2xlarge", AMD64, CPU_INTEL, 8, 16384, 7910, 14162, 58, 0, "", 0, 0, 357000, 59, 4, "abcdf"},
    {"c7i.48xlarge", AMD64, CPU_INTEL, 192, 393216, 191450, 355262, 737, 0, "", 0, 0, 8568000, 75, 4, "abcdf"},
    {"c7i.4xlarge", AMD64, CPU_INTEL, 16, 32768, 15890, 27381, 234, 0, "", 0, 0, 714000, 61, 3, "abcdf"},
    {"c7i.8xlarge", AMD64, CPU_INTEL, 32, 65536, 31850, 57691, 234, 0, "", 0, 0, 1428000, 62, 2, "abcdf"},
    {"c7i.large", AMD64, CPU_INTEL, 2, 4096, 1930, 3114, 29, 0, "", 0, 0, 89250, 66, 4, "abcdf"},
    {"c7i.xlarge", AMD64, CPU_INTEL, 4, 8192, 3920, 6584, 58, 0, "", 0, 0, 178500, 61, 4, "abcdf"},
    {"g4dn.12xlarge", AMD64, CPU_INTEL, 48, 196608, 47810, 178933, 234, 900, "t4", 4, 16384, 3912000, 64, 2, "abcdf"},
    {"g4dn.16xlarge", AMD64, CPU_INTEL, 64, 262144, 63770, 241490, 58, 900, "t4", 1, 16384, 4352000, 76, 4, "abcdf"},
    {"g4dn.2xlarge", AMD64, CPU_INTEL, 8, 32768, 7910, 29636, 29, 225, "t4", 1, 16384, 752000, 61, 4, "abcdf"},
    {"g4dn.4xlarge", AMD64, CPU_INTEL, 16, 65536, 15890, 59946, 29, 225, "t4", 1, 16384, 1204000, 68, 4, "abcdf"},
    {"g4dn.8xlarge", AMD64, CPU_INTEL, 32, 131072, 31850, 120248, 58, 900, "t4", 1, 16384, 2176000, 63, 4, "abcdf"},
    {"g4dn.metal", AMD64, CPU_INTEL, 96, 393216, 95690, 355262, 737, 1800, "t4", 8, 16384, 7824000, 51, 4, "abcdf"},
    {"g4dn.xlarge", AMD64, CPU_INTEL, 4, 16384, 3920, 14481, 29, 125, "t4", 1, 16384, 526000, 64, 3, "abcdf"},
    {"g5.12xlarge", AMD64, CPU_AMD, 48, 196608, 47810, 173400, 737, 3800, "a10g", 4, 22888, 5672000, 58, 4, "abcdf"},
    {"g5.16xlarge", AMD64, CPU_AMD, 64, 262144, 63770, 239554, 234, 1900, "a10g", 1, 22888, 4096000, 61, 4, "abcdf"},
    {"g5.24xlarge", AMD64, CPU_AMD, 96, 393216, 95690, 355262, 737, 3800, "a10g", 4, 22888, 8144000, 57, 4, "abcdf"},
    {"g5.2xlarge", AMD64, CPU_AMD, 8, 32768, 7910, 29317, 58, 450, "a10g", 1, 22888, 1212000, 58, 3, "abcdf"},
    {"g5.48xlarge", AMD64, CPU_AMD, 192, 786432, 191450, 723299, 345, 7600, "a10g", 8, 22888, 16288000, 71, 4, "abcdf"},
    {"g5.4xlarge", AMD64, CPU_AMD, 16, 65536, 15890, 57691, 234, 600, "a10g", 1, 22888, 1624000, 60, 2, "abcdf"},
    {"g5.8xlarge", AMD64, CPU_AMD, 32, 131072, 31850, 118312, 234, 900, "a10g", 1, 22888, 2448000, 59, 4, "abcdf"},
    {"g5.xlarge", AMD64, CPU_AMD, 4, 16384, 3920, 14162, 58, 250, "a10g", 1, 22888, 1006000, 59, 4, "abcdf"},
    {"g5g.16xlarge", ARM64, CPU_AWS, 64, 131072, 63770, 112720, 737, 0, "t4g", 2, 16384, 2744000, 78, 1, "abcd"},
    {"g5g.2xlarge", ARM64, CPU_AWS, 8, 16384, 7910, 14103, 58, 0, "t4g", 1, 16384, 556000, 48, 1, "abcd"},
    {"g5g.4xlarge", ARM64, CPU_AWS, 16, 32768, 15890, 27322, 234, 0, "t4g", 1, 16384, 828000, 63, 0, "abcd"},
    {"g5g.8xlarge", ARM64, CPU_AWS, 32, 65536, 31850, 57632, 234, 0, "t4g", 1, 16384, 1372000, 58, 2, "abcd"},
    {"g5g.metal", ARM64, CPU_AWS, 64, 131072, 63770, 112720, 737, 0, "t4g", 2, 16384, 2744000, 78, 0, "abcd"},
    {"g5g.xlarge", ARM64, CPU_AWS, 4, 8192, 3920, 6525, 58, 0, "t4g", 1, 16384, 420000, 67, 0, "abcd"},
    {"g6.12xlarge", AMD64, CPU_AMD, 48, 196608, 47810, 178933, 234, 3760, "l4", 4, 22888, 4601600, 59, 4, "abcdf"},
    {"g6.16xlarge", AMD64, CPU_AMD, 64, 262144, 63770, 234021, 737, 1880, "l4", 1, 22888, 3396800, 64, 3, "abcdf"},
    {"g6.24xlarge", AMD64, CPU_AMD, 96, 393216, 95690, 355262, 737, 3760, "l4", 4, 22888, 6675200, 56, 4, "abcdf"},
    {"g6.2xlarge", AMD64, CPU_AMD, 8, 32768, 7910, 29317, 58, 450, "l4", 1, 22888, 977600, 58, 4, "abcdf"},
    {"g6.48xlarge", AMD64, CPU_AMD, 192, 786432, 191450, 718987, 737, 7520, "l4", 8, 22888, 13350400, 69, 4, "abcdf"},
    {"g6.4xlarge", AMD64, CPU_AMD, 16, 65536, 15890, 57691, 234, 600, "l4", 1, 22888, 1323200, 57, 4, "abcdf"},
    {"g6.8xlarge", AMD64, CPU_AMD, 32, 131072, 31850, 118312, 234, 900, "l4", 1, 22888, 2014400, 56, 4, "abcdf"},
    {"g6.xlarge", AMD64, CPU_AMD, 4, 16384, 3920, 14162, 58, 250, "l4", 1, 22888, 804800, 49, 4, "abcdf"},
    {"g6e.12xlarge", AMD64, CPU_AMD, 48, 393216, 47810, 360157, 292, 3800, "l40s", 4, 45776, 10492640, 56, 4, "abcd"},
    {"g6e.16xlarge", AMD64, CPU_AMD, 64, 524288, 63770, 476504, 737, 1900, "l40s", 1, 45776, 7577190, 66, 3, "abcd"},
    {"g6e.24xlarge", AMD64, CPU_AMD, 96, 786432, 95690, 721682, 492, 3800, "l40s", 4, 45776, 15065590, 74, 4, "abcd"},
    {"g6e.2xlarge", AMD64, CPU_AMD, 8, 65536, 7910, 59627, 58, 450, "l40s", 1, 45776, 2242080, 63, 2, "abcd"},
    {"g6e.48xlarge", AMD64, CPU_AMD, 192, 1572864, 191450, 1449132, 492, 7600, "l40s", 8, 45776, 30131180, 68, 4, "abcd"},
    {"g6e.4xlarge", AMD64, CPU_AMD, 16, 131072, 15890, 118312, 234, 600, "l40s", 1, 45776, 3004240, 62, 4, "abcd"},
    {"g6e.8xlarge", AMD64, CPU_AMD, 32, 262144, 31850, 239554, 234, 900, "l40s", 1, 45776, 4528560, 66, 4, "abcd"},
    {"g6e.xlarge", AMD64, CPU_AMD, 4, 32768, 3920, 29317, 58, 250, "l40s", 1, 45776, 1861000, 58, 1, "abcd"},
    {"g6f.2xlarge", AMD64, CPU_AMD, 8, 32768, 7910, 29317, 58, 200, "l4", 1, 5722, 475000, -1, 4, "abcd"},
    {"g6f.4xlarge", AMD64, CPU_AMD, 16, 65536, 15890, 57691, 234, 450, "l4", 1, 11444, 950000, -1, 4, "abcd"},
    {"g6f.large", AMD64, CPU_AMD, 2, 8192, 1930, 7002, 20, 100, "l4", 1, 2861, 202000, -1, 4, "abcd"},
    {"g6f.xlarge", AMD64, CPU_AMD, 4, 16384, 3920, 14162, 58, 100, "l4", 1, 2861, 237500, -1, 4, "abcd"},
    {"g7.12xlarge", AMD64, CPU_INTEL, 48, 196608, 47810, 173169, 758, 1900, "rtx-pro-4500", 2, 32768, 7128320, -1, 4, "ad"},
    {"g7.24xlarge", AMD64, CPU_INTEL, 96, 393216, 95690, 346715, 1514, 3800, "rtx-pro-4500", 4, 32768, 14256640, -1, 4, "ad"},
    {"g7.2xlarge", AMD64, CPU_INTEL, 8, 32768, 7910, 27161, 254, 440, "rtx-pro-4500", 1, 32768, 2520000, -1, 4, "ad"},
    {"g7.48xlarge", AMD64, CPU_INTEL, 192, 786432, 191450, 718756, 758, 7600, "rtx-pro-4500", 8, 32768, 28513280, -1, 4, "ad"},
    {"g7.4xlarge", AMD64, CPU_INTEL, 16, 65536, 15890, 54699, 506, 875, "rtx-pro-4500", 1, 32768, 3042080, -1, 4, "ad"},
    {"g7.8xlarge", AMD64, CPU_INTEL, 32, 131072, 31850, 113934, 632, 930, "rtx-pro-4500", 1, 32768, 4086240, -1, 4, "ad"},
    {"g7e.12xlarge", AMD64, CPU_INTEL, 48, 524288, 47810, 477659, 632, 3800, "rtx-pro-server-6000", 2, 98304, 8286080, -1, 4, "ac"},
    {"g7e.24xlarge", AMD64, CPU_INTEL, 96, 1048576, 95690, 962625, 632, 7600, "rtx-pro-server-6000", 4, 98304, 16572160, -1, 4, "ac"},
    {"g7e.2xlarge", AMD64, CPU_INTEL, 8, 65536, 7910, 57471, 254, 1900, "rtx-pro-server-6000", 1, 98304, 3363120, -1, 4, "ac"},
    {"g7e.48xlarge", AMD64, CPU_INTEL, 192, 2097152, 191450, 1932558, 632, 15200, "rtx-pro-server-6000", 8, 98304, 33144320, -1, 4, "ac"},
    {"g7e.4xlarge", AMD64, CPU_INTEL, 16, 131072, 15890, 115320, 506, 1900, "rtx-pro-server-6000", 1, 98304, 3998160, -1, 4, "ac"},
    {"g7e.8xlarge", AMD64, CPU_INTEL, 32, 262144, 31850, 236562, 506, 1900, "rtx-pro-server-6000", 1, 98304, 5268240, -1, 4, "ac"},
    {"gr6.4xlarge", AMD64, CPU_AMD, 16, 131072, 15890, 118312, 234, 600, "l4", 1, 22888, 1539200, 57, 4, "abcd"},
    {"gr6.8xlarge", AMD64, CPU_AMD, 32, 262144, 31850, 239554, 234, 900, "l4", 1, 22888, 2446400, 59, 3, "abcd"},
    {"gr6f.4xlarge", AMD64, CPU_AMD, 16, 131072, 15890, 118312, 234, 450, "l4", 1, 11444, 1066000, -1, 4, "abcd"},
    {"m5.12xlarge", AMD64, CPU_INTEL, 48, 196608, 47810, 178933, 234, 0, "", 0, 0, 2304000, 69, 4, "abcdf"},
    {"m5.16xlarge", AMD64, CPU_INTEL, 64, 262144, 63770, 234021, 737, 0, "", 0, 0, 3072000, 71, 4, "abcdf"},
    {"m5.24xlarge", AMD64, CPU_INTEL, 96, 393216, 95690, 355262, 737, 0, "", 0, 0, 4608000, 75, 4, "abcdf"},
    {"m5.2xlarge", AMD64, CPU_INTEL, 8, 32768, 7910, 29317, 58, 0, "", 0, 0, 384000, 54, 2, "abcdf"},
    {"m5.4xlarge", AMD64, CPU_INTEL, 16, 65536, 15890, 57691, 234, 0, "", 0, 0, 768000, 58, 3, "abcdf"},
    {"m5.8xlarge", AMD64, CPU_INTEL, 32, 131072, 31850, 118312, 234, 0, "", 0, 0, 1536000, 69, 4, "abcdf"},
    {"m5.large", AMD64, CPU_INTEL, 2, 8192, 1930, 6903, 29, 0, "", 0, 0, 96000, 66, 3, "abcdf"},
    {"m5.xlarge", AMD64, CPU_INTEL, 4, 16384, 3920, 14162, 58, 0, "", 0, 0, 192000, 66, 4, "abcdf"},
    {"m5d.12xlarge", AMD64, CPU_INTEL, 48, 196608, 47810, 178933, 234, 1800, "", 0, 0, 2712000, 58, 3, "abcdf"},
    {"m5d.16xlarge", AMD64, CPU_INTEL, 64, 262144, 63770, 234021, 737, 2400, "", 0, 0, 3616000, 57, 2, "abcdf"},
    {"m5d.24xlarge", AMD64, CPU_INTEL, 96, 393216, 95690, 355262, 737, 3600, "", 0, 0, 5424000, 61, 3, "abcdf"},
    {"m5d.2xlarge", AMD64, CPU_INTEL, 8, 32768, 7910, 29317, 58, 300, "", 0, 0, 452000, 46, 0, "abcdf"},
    {"m5d.4xlarge", AMD64, CPU_INTEL, 16, 65536, 15890, 57691, 234, 600, "", 0, 0, 904000, 48, 1, "abcdf"},
    {"m5d.8xlarge", AMD64, CPU_INTEL, 32, 131072, 31850, 118312, 234, 1200, "", 0, 0, 1808000, 53, 4, "abcdf"},
    {"m5d.large", AMD64, CPU_INTEL, 2, 8192, 1930, 6903, 29, 75, "", 0, 0, 113000, 59, 0, "abcdf"},
    {"m5d.xlarge", AMD64, CPU_INTEL, 4, 16384, 3920, 14162, 58, 150, "", 0, 0, 226000, 53, 1, "abcdf"},
    {"m6a.12xlarge", AMD64, CPU_AMD, 48, 196608, 47810, 178933, 234, 0, "", 0, 0, 2073600, 66, 4, "abcdf"},
    {"m6a.16xlarge", AMD64, CPU_AMD, 64, 262144, 63770, 234021, 737, 0, "", 0, 0, 2764800, 66, 4, "abcdf"},
    {"m6a.24xlarge", AMD64, CPU_AMD, 96, 393216, 95690, 355262, 737, 0, "", 0, 0, 4147200, 72, 4, "abcdf"},
    {"m6a.2xlarge", AMD64, CPU_AMD, 8, 32768, 7910, 29317, 58, 0, "", 0, 0, 345600, 54, 4, "abcdf"},
    {"m6a.32xlarge", AMD64, CPU_AMD, 128, 524288, 127610, 476504, 737, 0, "", 0, 0, 5529600, 71, 4, "abcdf"},
    {"m6a.48xlarge", AMD64, CPU_AMD, 192, 786432, 191450, 718987, 737, 0, "", 0, 0, 8294400, 71, 4, "abcdf"},
    {"m6a.4xlarge", AMD64, CPU_AMD, 16, 65536, 15890, 57691, 234, 0, "", 0, 0, 691200, 54, 3, "abcdf"},
    {"m6a.8xlarge", AMD64, CPU_AMD, 32, 131072, 31850, 118312, 234, 0, "", 0, 0, 1382400, 63, 4, "abcdf"},
    {"m6a.large", AMD64, CPU_AMD, 2, 8192, 1930, 6903, 29, 0, "", 0, 0, 86400, 59, 1, "abcdf"},
    {"m6a.xlarge", AMD64, CPU_AMD, 4, 16384, 3920, 14162, 58, 0, "", 0, 0, 172800, 57, 4, "abcdf"},
    {"m6i.12xlarge", AMD64, CPU_INTEL, 48, 196608, 47810, 178933, 234, 0, "", 0, 0, 2304000, 70, 4, "abcdf"},
    {"m6i.16xlarge", AMD64, CPU_INTEL, 64, 262144, 63770, 234021, 737, 0, "", 0, 0, 3072000, 54, 0, "abcdf"},
    {"m6i.24xlarge", AMD64, CPU_INTEL, 96, 393216, 95690, 355262, 737, 0, "", 0, 0, 4608000, 71, 4, "abcdf"},
    {"m6i.2xlarge", AMD64, CPU_INTEL, 8, 32768, 7910, 29317, 58, 0, "", 0, 0, 384000, 58, 4, "abcdf"},
    {"m6i.32xlarge", AMD64, CPU_INTEL, 128, 524288, 127610, 476504, 737, 0, "", 0, 0, 6144000, 73, 4, "abcdf"},
    {"m6i.4xlarge", AMD64, CPU_INTEL, 16, 65536, 15890, 57691, 234, 0, "", 0, 0, 768000, 66, 4, "abcdf"},
    {"m6i.8xlarge", AMD64, CPU_INTEL, 32, 131072, 31850, 118312, 234, 0, "", 0, 0, 1536000, 60, 3, "abcdf"},
    {"m6i.large", AMD64, CPU_INTEL, 2, 8192, 1930, 6903, 29, 0, "", 0, 0, 96000, 63, 2, "abcdf"},
    {"m6i.xlarge", AMD64, CPU_INTEL, 4, 16384, 3920, 14162, 58, 0, "", 0, 0, 192000, 55, 1, "abcdf"},
    {"m7g.12xlarge", ARM64, CPU_AWS, 48, 196608, 47810, 178874, 234, 0, "", 0, 0, 1958400, 71, 4, "abcdf"},
    {"m7g.16xlarge", ARM64, CPU_AWS, 64, 262144, 63770, 233962, 737, 0, "", 0, 0, 2611200, 71, 0, "abcdf"},
    {"m7g.2xlarge", ARM64, CPU_AWS, 8, 32768, 7910, 29258, 58, 0, "", 0, 0, 326400, 64, 1, "abcdf"},
    {"m7g.4xlarge", ARM64, CPU_AWS, 16, 65536, 15890, 57632, 234, 0, "", 0, 0, 652800, 62, 1, "abcdf"},
    {"m7g.8xlarge", ARM64, CPU_AWS, 32, 131072, 31850, 118253, 234, 0, "", 0, 0, 1305600, 64, 1, "abcdf"},
    {"m7g.large", ARM64, CPU_AWS, 2, 8192, 1930, 6844, 29, 0, "", 0, 0, 81600, 64, 2, "abcdf"},
    {"m7g.medium", ARM64, CPU_AWS, 1, 4096, 940, 3286, 8, 0, "", 0, 0, 40800, 66, 1, "abcdf"},
    {"m7g.xlarge", ARM64, CPU_AWS, 4, 16384, 3920, 14103, 58, 0, "", 0, 0, 163200, 62, 1, "abcdf"},
    {"m7i.12xlarge", AMD64, CPU_INTEL, 48, 196608, 47810, 178933, 234, 0, "", 0, 0, 2419200, 70, 4, "abcdf"},
    {"m7i.16xlarge", AMD64, CPU_INTEL, 64, 262144, 63770, 234021, 737, 0, "", 0, 0, 3225600, 60, 0, "abcdf"},
    {"m7i.24xlarge", AMD64, CPU_INTEL, 96, 393216, 95690, 355262, 737, 0, "", 0, 0, 4838400, 65, 1, "abcdf"},
    {"m7i.2xlarge", AMD64, CPU_INTEL, 8, 32768, 7910, 29317, 58, 0, "", 0, 0, 403200, 62, 4, "abcdf"},
    {"m7i.48xlarge", AMD64, CPU_INTEL, 192, 786432, 191450, 718987, 737, 0, "", 0, 0, 9676800, 69, 4, "abcdf"},
    {"m7i.4xlarge", AMD64, CPU_INTEL, 16, 65536, 15890, 57691, 234, 0, "", 0, 0, 806400, 52, 1, "abcdf"},
    {"m7i.8xlarge", AMD64, CPU_INTEL, 32, 131072, 31850, 118312, 234, 0, "", 0, 0, 1612800, 53, 0, "abcdf"},
    {"m7i.large", AMD64, CPU_INTEL, 2, 8192, 1930, 6903, 29, 0, "", 0, 0, 100800, 68, 3, "abcdf"},
    {"m7i.xlarge", AMD64, CPU_INTEL, 4, 16384, 3920, 14162, 58, 0, "", 0, 0, 201600, 53, 3, "abcdf"},
    {"p3dn.24xlarge", AMD64, CPU_INTEL, 96, 786432, 95690, 718987, 737, 1800, "v100", 8, 32768, 31212000, 87, 4, "cd"},
    {"p4d.24xlarge", AMD64, CPU_INTEL, 96, 1179648, 95690, 1082712, 737, 8000, "a100", 8, 40960, 21957642, 67, 2, "abcd"},
    {"p4de.24xlarge", AMD64, CPU_INTEL, 96, 1179648, 95690, 1082712, 737, 8000, "a100", 8, 81920, 27447050, 65, 0, "bc"},
    {"p5.48xlarge", AMD64, CPU_AMD, 192, 2097152, 191450, 1938410, 100, 30400, "h100", 8, 81920, 55040000, 52, 4, "abcdef"},
    {"p5.4xlarge", AMD64, CPU_AMD, 16, 262144, 15890, 240830, 118, 3800, "h100", 1, 81920, 6880000, -1, 4, "abcdef"},
    {"p5en.48xlarge", AMD64, CPU_AMD, 192, 2097152, 191450, 1937332, 198, 30400, "h200", 8, 144384, 63296000, 64, 0, "ac"},
    {"p6-b200.48xlarge", AMD64, CPU_INTEL, 192, 2097152, 191450, 1937332, 198, 30400, "b200", 8, 183359, 113932800, -1, 4, "c"},
    {"p6-b300.48xlarge", AMD64, CPU_INTEL, 192, 4194304, 191450, 3877198, 198, 30400, "b300", 8, 275040, 142416000, -1, 4, "c"},
    {"r5.12xlarge", AMD64, CPU_INTEL, 48, 393216, 47810, 360795, 234, 0, "", 0, 0, 3024000, 69, 4, "abcdf"},
    {"r5.16xlarge", AMD64, CPU_INTEL, 64, 524288, 63770, 476504, 737, 0, "", 0, 0, 4032000, 76, 4, "abcdf"},
    {"r5.24xlarge", AMD64, CPU_INTEL, 96, 786432, 95690, 718987, 737, 0, "", 0, 0, 6048000, 64, 4, "abcdf"},
    {"r5.2xlarge", AMD64, CPU_INTEL, 8, 65536, 7910, 59627, 58, 0, "", 0, 0, 504000, 61, 4, "abcdf"},
    {"r5.4xlarge", AMD64, CPU_INTEL, 16, 131072, 15890, 118312, 234, 0, "", 0, 0, 1008000, 65, 4, "abcdf"},
    {"r5.8xlarge", AMD64, CPU_INTEL, 32, 262144, 31850, 239554, 234, 0, "", 0, 0, 2016000, 76, 4, "abcdf"},
    {"r5.large", AMD64, CPU_INTEL, 2, 16384, 1930, 14481, 29, 0, "", 0, 0, 126000, 60, 0, "abcdf"},
    {"r5.xlarge", AMD64, CPU_INTEL, 4, 32768, 3920, 29317, 58, 0, "", 0, 0, 252000, 69, 3, "abcdf"},
    {"r6a.12xlarge", AMD64, CPU_AMD, 48, 393216, 47810, 360795, 234, 0, "", 0, 0, 2721600, 59, 2, "abcdf"},
    {"r6a.16xlarge", AMD64, CPU_AMD, 64, 524288, 63770, 476504, 737, 0, "", 0, 0, 3628800, 77, 4, "abcdf"},
    {"r6a.24xlarge", AMD64, CPU_AMD, 96, 786432, 95690, 718987, 737, 0, "", 0, 0, 5443200, 74, 4, "abcdf"},
    {"r6a.2xlarge", AMD64, CPU_AMD, 8, 65536, 7910, 59627, 58, 0, "", 0, 0, 453600, 62, 4, "abcdf"},
    {"r6a.32xlarge", AMD64, CPU_AMD, 128, 1048576, 127610, 961470, 737, 0, "", 0, 0, 7257600, 77, 4, "abcdf"},
    {"r6a.48xlarge", AMD64, CPU_AMD, 192, 1572864, 191450, 1446437, 737, 0, "", 0, 0, 10886400, 77, 4, "abcdf"},
    {"r6a.4xlarge", AMD64, CPU_AMD, 16, 131072, 15890, 118312, 234, 0, "", 0, 0, 907200, 57, 4, "abcdf"},
    {"r6a.8xlarge", AMD64, CPU_AMD, 32, 262144, 31850, 239554, 234, 0, "", 0, 0, 1814400, 73, 4, "abcdf"},
    {"r6a.large", AMD64, CPU_AMD, 2, 16384, 1930, 14481, 29, 0, "", 0, 0, 113400, 66, 1, "abcdf"},
    {"r6a.xlarge", AMD64, CPU_AMD, 4, 32768, 3920, 29317, 58, 0, "", 0, 0, 226800, 69, 4, "abcdf"},
    {"r6i.12xlarge", AMD64, CPU_INTEL, 48, 393216, 47810, 360795, 234, 0, "", 0, 0, 3024000, 69, 4, "abcdf"},
    {"r6i.16xlarge", AMD64, CPU_INTEL, 64, 524288, 63770, 476504, 737, 0, "", 0, 0, 4032000, 75, 4, "abcdf"},
    {"r6i.24xlarge", AMD64, CPU_INTEL, 96, 786432, 95690, 718987, 737, 0, "", 0, 0, 6048000, 72, 4, "abcdf"},
    {"r6i.2xlarge", AMD64, CPU_INTEL, 8, 65536, 7910, 59627, 58, 0, "", 0, 0, 504000, 55, 4, "abcdf"},
    {"r6i.32xlarge", AMD64, CPU_INTEL, 128, 1048576, 127610, 961470, 737, 0, "", 0, 0, 8064000, 75, 4, "abcdf"},
    {"r6i.4xlarge", AMD64, CPU_INTEL, 16, 131072, 15890, 118312, 234, 0, "", 0, 0, 1008000, 58, 4, "abcdf"},
    {"r6i.8xlarge", AMD64, CPU_INTEL, 32, 262144, 31850, 239554, 234, 0, "", 0, 0, 2016000, 72, 4, "abcdf"},
    {"r6i.large", AMD64, CPU_INTEL, 2, 16384, 1930, 14481, 29, 0, "", 0, 0, 126000, 68, 4, "abcdf"},
    {"r6i.xlarge", AMD64, CPU_INTEL, 4, 32768, 3920, 29317, 58, 0, "", 0, 0, 252000, 58, 4, "abcdf"},
    {"r7g.12xlarge", ARM64, CPU_AWS, 48, 393216, 47810, 360736, 234, 0, "", 0, 0, 2570400, 71, 2, "abcdf"},
    {"r7g.16xlarge", ARM64, CPU_AWS, 64, 524288, 63770, 476445, 737, 0, "", 0, 0, 3427200, 81, 2, "abcdf"},
    {"r7g.2xlarge", ARM64, CPU_AWS, 8, 65536, 7910, 59568, 58, 0, "", 0, 0, 428400, 67, 4, "abcdf"},
    {"r7g.4xlarge", ARM64, CPU_AWS, 16, 131072, 15890, 118253, 234, 0, "", 0, 0, 856800, 67, 4, "abcdf"},
    {"r7g.8xlarge", ARM64, CPU_AWS, 32, 262144, 31850, 239495, 234, 0, "", 0, 0, 1713600, 67, 1, "abcdf"},
    {"r7g.large", ARM64, CPU_AWS, 2, 16384, 1930, 14422, 29, 0, "", 0, 0, 107100, 68, 2, "abcdf"},
    {"r7g.medium", ARM64, CPU_AWS, 1, 8192, 940, 7075, 8, 0, "", 0, 0, 53600, 69, 0, "abcdf"},
    {"r7g.xlarge", ARM64, CPU_AWS, 4, 32768, 3920, 29258, 58, 0, "", 0, 0, 214200, 71, 4, "abcdf"},
    {"r7i.12xlarge", AMD64, CPU_INTEL, 48, 393216, 47810, 360795, 234, 0, "", 0, 0, 3175200, 69, 4, "abcdf"},
    {"r7i.16xlarge", AMD64, CPU_INTEL, 64, 524288, 63770, 476504, 737, 0, "", 0, 0, 4233600, 67, 0, "abcdf"},
    {"r7i.24xlarge", AMD64, CPU_INTEL, 96, 786432, 95690, 718987, 737, 0, "", 0, 0, 6350400, 69, 4, "abcdf"},
    {"r7i.2xlarge", AMD64, CPU_INTEL, 8, 65536, 7910, 59627, 58, 0, "", 0, 0, 529200, 59, 4, "abcdf"},
    {"r7i.48xlarge", AMD64, CPU_INTEL, 192, 1572864, 191450, 1446437, 737, 0, "", 0, 0, 12700800, 61, 4, "abcdf"},
    {"r7i.4xlarge", AMD64, CPU_INTEL, 16, 131072, 15890, 118312, 234, 0, "", 0, 0, 1058400, 66, 4, "abcdf"},
    {"r7i.8xlarge", AMD64, CPU_INTEL, 32, 262144, 31850, 239554, 234, 0, "", 0, 0, 2116800, 79, 4, "abcdf"},
    {"r7i.large", AMD64, CPU_INTEL, 2, 16384, 1930, 14481, 29, 0, "", 0, 0, 132300, 65, 2, "abcdf"},
    {"r7i.xlarge", AMD64, CPU_INTEL, 4, 32768, 3920, 29317, 58, 0, "", 0, 0, 264600, 60, 3, "abcdf"},
    {"t3.2xlarge", AMD64, CPU_INTEL, 8, 32768, 7910, 29317, 58, 0, "", 0, 0, 332800, 65, 2, "abcdf"},
    {"t3.large", AMD64, CPU_INTEL, 2, 8192, 1930, 6837, 35, 0, "", 0, 0, 83200, 62, 1, "abcdf"},
    {"t3.medium", AMD64, CPU_INTEL, 2, 4096, 1930, 3246, 17, 0, "", 0, 0, 41600, 56, 0, "abcdf"},
    {"t3.micro", AMD64, CPU_INTEL, 2, 1024, 1930, 548, 4, 0, "", 0, 0, 10400, 69, 0, "abcdf"},
    {"t3.nano", AMD64, CPU_INTEL, 2, 512, 1930, 74, 4, 0, "", 0, 0, 5200, 79, 0, "abcdf"},
    {"t3.small", AMD64, CPU_INTEL, 2, 2048, 1930, 1418, 11, 0, "", 0, 0, 20800, 65, 0, "abcdf"},
    {"t3.xlarge", AMD64, CPU_INTEL, 4, 16384, 3920, 14162, 58, 0, "", 0, 0, 166400, 60, 2, "abcdf"},
};
/* clang-format on */

/* The middle of each of the advisor's buckets, parts per million a month. */
static const int32_t interruption_ppm[] = {25000, 75000, 125000, 175000, 250000};

static const char *text_i64(struct catalog *c, int64_t v)
{
    return arena_printf(&c->arena, "%lld", (long long)v).p;
}

/* "g5.xlarge" is category g, family g5, generation 5, size xlarge. */
static void add_name_labels(struct catalog *c, struct vec_label *v, const char *name)
{
    struct str s = str_from(name);
    size_t dot = str_find_char(s, '.', 0), digit = 0, end;
    while (digit < dot && !isdigit((unsigned char)name[digit]))
        digit++;
    for (end = digit; end < dot && isdigit((unsigned char)name[end]);)
        end++;
    const struct label parts[] = {
        {"karpenter.k8s.aws/instance-category", arena_cstr(&c->arena, str_sub(s, 0, digit))},
        {"karpenter.k8s.aws/instance-family", arena_cstr(&c->arena, str_sub(s, 0, dot))},
        {"karpenter.k8s.aws/instance-generation", arena_cstr(&c->arena, str_sub(s, digit, end))},
        {"karpenter.k8s.aws/instance-size", arena_cstr(&c->arena, str_sub(s, dot + 1, s.len))},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        vec_push(v, parts[i]);
}

static void add_gpu_labels(struct catalog *c, struct vec_label *v, const struct row *r)
{
    vec_push(v, (struct label){"karpenter.k8s.aws/instance-gpu-name", r->gpu});
    vec_push(v, (struct label){"karpenter.k8s.aws/instance-gpu-manufacturer", "nvidia"});
    vec_push(v, (struct label){"karpenter.k8s.aws/instance-gpu-count", text_i64(c, r->gpus)});
    vec_push(v,
             (struct label){"karpenter.k8s.aws/instance-gpu-memory", text_i64(c, r->gpu_mem_mib)});
}

static struct labels labels_of(struct catalog *c, const struct row *r)
{
    static const char *const makers[] = {
        [CPU_INTEL] = "intel", [CPU_AMD] = "amd", [CPU_AWS] = "aws"};
    struct vec_label v = {0};
    vec_push(&v, (struct label){"kubernetes.io/arch", r->arch == ARM64 ? "arm64" : "amd64"});
    vec_push(&v, (struct label){"kubernetes.io/os", "linux"});
    vec_push(&v, (struct label){"node.kubernetes.io/instance-type", r->name});
    vec_push(&v, (struct label){"topology.kubernetes.io/region", REGION});
    add_name_labels(c, &v, r->name);
    vec_push(&v, (struct label){"karpenter.k8s.aws/instance-cpu", text_i64(c, r->vcpu)});
    vec_push(&v, (struct label){"karpenter.k8s.aws/instance-cpu-manufacturer", makers[r->cpu]});
    vec_push(&v, (struct label){"karpenter.k8s.aws/instance-memory", text_i64(c, r->mem_mib)});
    bool metal = str_has_suffix(str_from(r->name), STR(".metal"));
    vec_push(&v, (struct label){"karpenter.k8s.aws/instance-hypervisor", metal ? "" : "nitro"});
    if (r->nvme_gb)
        vec_push(&v,
                 (struct label){"karpenter.k8s.aws/instance-local-nvme", text_i64(c, r->nvme_gb)});
    if (*r->gpu)
        add_gpu_labels(c, &v, r);
    struct labels out = catalog_labels(c, &v);
    vec_release(&v);
    return out;
}

static struct resource_list resources_of(struct catalog *c, const struct row *r, int64_t cpu,
                                         int64_t mem_mib, int64_t storage)
{
    struct vec_amount v = {0};
    vec_push(&v, (struct resource_amount){"cpu", cpu});
    vec_push(&v, (struct resource_amount){"memory", mem_mib * MIB});
    vec_push(&v, (struct resource_amount){"pods", r->pods});
    vec_push(&v, (struct resource_amount){"ephemeral-storage", storage});
    if (*r->gpu)
        vec_push(&v, (struct resource_amount){"nvidia.com/gpu", r->gpus});
    struct resource_list out = catalog_amounts(c, &v);
    vec_release(&v);
    return out;
}

static void add_offerings(struct catalog *c, const struct row *r, struct instance_type *t)
{
    size_t zones = strlen(r->zones), n = 0;
    struct offering *out = ARENA_NEW_ARRAY(&c->arena, struct offering, 2 * zones);
    for (size_t i = 0; i < zones; i++) {
        const char *zone = arena_printf(&c->arena, "%s%c", REGION, r->zones[i]).p;
        out[n++] = (struct offering){.zone = zone,
                                     .capacity_type = CAPACITY_ON_DEMAND,
                                     .price_uusd_h = r->price_uusd_h,
                                     .available = true};
        if (r->spot_savings < 0)
            continue;
        out[n++] = (struct offering){.zone = zone,
                                     .capacity_type = CAPACITY_SPOT,
                                     .price_uusd_h =
                                         num_mul_div(r->price_uusd_h, 100 - r->spot_savings, 100),
                                     .available = true,
                                     .interruption_ppm_month = interruption_ppm[r->interruptions]};
    }
    t->offerings = out;
    t->n_offerings = (uint32_t)n;
}

struct catalog *catalog_builtin(void)
{
    struct catalog *c = catalog_new(0);
    struct instance_type *types = ARENA_NEW_ARRAY(&c->arena, struct instance_type, ARRAY_LEN(rows));
    c->region = REGION;
    c->as_of = AS_OF * NS_PER_S;
    c->version = AS_OF;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        struct instance_type *t = &types[i];
        t->name = r->name;
        t->arch = r->arch == ARM64 ? "arm64" : "amd64";
        t->os = "linux";
        t->capacity = resources_of(c, r, r->vcpu * INT64_C(1000), r->mem_mib, 20 * GIB);
        t->allocatable = resources_of(c, r, r->alloc_cpu_milli, r->alloc_mem_mib, 17 * GIB);
        t->labels = labels_of(c, r);
        add_offerings(c, r, t);
    }
    size_t twice = catalog_sort(types, ARRAY_LEN(rows));
    assert(!twice);
    c->types = types;
    c->n_types = ARRAY_LEN(rows);
    return c;
}
