/* SPDX-License-Identifier: MIT */
/* Whether a test is compiled with the address or the thread sanitizer, by gcc or clang: 0 or 1. */
#ifndef HAFT_TESTS_SANITIZERS_H
#define HAFT_TESTS_SANITIZERS_H

#if defined(__SANITIZE_ADDRESS__)
#    define CHECK_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define CHECK_ADDRESS_SANITIZER 1
#    endif
#endif
#ifndef CHECK_ADDRESS_SANITIZER
#    define CHECK_ADDRESS_SANITIZER 0
#endif
#if defined(__SANITIZE_THREAD__)
#    define CHECK_THREAD_SANITIZER 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define CHECK_THREAD_SANITIZER 1
#    endif
#endif
#ifndef CHECK_THREAD_SANITIZER
#    define CHECK_THREAD_SANITIZER 0
#endif

#endif
