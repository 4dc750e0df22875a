# SPDX-License-Identifier: MIT
# Where Haft runs. Included before any language is enabled.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "Haft runs on Linux, on x86-64 and AArch64, and not on ${CMAKE_SYSTEM_NAME}. On macOS and "
    "Windows it can be built in a container or a virtual machine with Linux (docs/limits.md).")
endif()
