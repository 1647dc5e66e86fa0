# SPDX-License-Identifier: Apache-2.0
# Compile flags of the kernel files, one line an ISA level. Included after the files are listed; a file for another architecture is empty.
#
# Kernels sum within a bound, not bit for bit, so here alone contraction is on: a product and the sum it stands in, no more, or the bits of a row would depend on which
# copy of the code it meets. That is what gcc makes of "fast"; clang fuses across statements then. -O3 because the register tiles need full unrolling.
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  set(contract -ffp-contract=on)
else()
  set(contract -ffp-contract=fast)
endif()
set(HONE_KERNEL_OPTIONS ${contract})
if(HONE_SANITIZE AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
  # Unrolled tiles are thousands of loads, and indices of arrays that are registers. The address sanitizer sees a wild pointer too.
  list(APPEND HONE_KERNEL_OPTIONS -fno-sanitize=pointer-overflow,alignment,bounds)
elseif(NOT HONE_SANITIZE)
  list(APPEND HONE_KERNEL_OPTIONS $<$<NOT:$<CONFIG:Debug>>:-O3>)
endif()
set(HONE_KERNEL_FLAGS__base)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(HONE_KERNEL_FLAGS__avx2 -mavx2 -mfma -mf16c)
  set(HONE_KERNEL_FLAGS__avx512 ${HONE_KERNEL_FLAGS__avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  set(HONE_KERNEL_FLAGS__vnni ${HONE_KERNEL_FLAGS__avx512} -mavx512vnni)
  set(HONE_KERNEL_FLAGS__avx512bf16 ${HONE_KERNEL_FLAGS__avx512} -mavx512bf16)
  set(HONE_KERNEL_FLAGS__avx512fp16 ${HONE_KERNEL_FLAGS__avx512} -mavx512fp16)
  set(HONE_KERNEL_FLAGS__amx ${HONE_KERNEL_FLAGS__avx512bf16} -mavx512vnni -mamx-tile -mamx-bf16 -mamx-int8)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang" AND NOT HONE_SANITIZE) # else gcc 12 moves sums from register to register within a step of a tile
    list(APPEND HONE_KERNEL_OPTIONS -frename-registers)
  endif()
  set(HONE_KERNEL_FLAGS__dotprod -march=armv8.2-a+dotprod)
  set(HONE_KERNEL_FLAGS__i8mm -march=armv8.2-a+i8mm)
  set(HONE_KERNEL_FLAGS__fp16 -march=armv8.2-a+fp16)
  set(HONE_KERNEL_FLAGS__fhm -march=armv8.2-a+fp16+fp16fml)
  set(HONE_KERNEL_FLAGS__bf16 -march=armv8.2-a+bf16)
endif()

# the words after the double underscore in a file's name say its level
file(GLOB HONE_KERNEL_FILES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*/*__*.c)
foreach(file ${HONE_KERNEL_FILES})
  string(REGEX REPLACE "^.*__([a-z0-9]+)\\.c$" "\\1" level ${file})
  set(options ${HONE_KERNEL_OPTIONS})
  if(file MATCHES "/epilogue_") # bit for bit what the program says; selects need no-trapping-math to become vectors
    set(options -ffp-contract=off -fno-trapping-math ${HONE_KERNEL_OPTIONS})
    list(REMOVE_ITEM options ${contract})
  endif()
  if(file MATCHES "/(dwconv_nhwc_rows__|direct_conv_f32|dwconv_nchw|gemm_f32|dwconv_i8)" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$" AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang") # sums and their factors fill the registers; gcc 12 loads all columns first, and spills
    list(APPEND options -fno-schedule-insns)
  endif()
  set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${options};${HONE_KERNEL_FLAGS__${level}}")
endforeach()
