# SPDX-License-Identifier: MIT
# Cross build for AArch64 Linux with Debian's compiler; programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-gcc)
find_program(HAFT_AARCH64_CXX aarch64-linux-gnu-g++)
if(HAFT_AARCH64_CXX)
  set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
endif()

find_program(HAFT_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
set(CMAKE_CROSSCOMPILING_EMULATOR ${HAFT_QEMU_AARCH64} -L /usr/aarch64-linux-gnu)

# Libraries and packages of the build machine are not the target's.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
