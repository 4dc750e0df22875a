/* The overflow of a thread's own stack by resumes within resumes is reported, with what to do. */
#include "../../core/tests/check.h"

#include <haft.hpp>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

struct Ask : haft::effect<long> {};

static void resume_without_end() {
    (void)haft::handle([]() -> long {
        for (;;)
            haft::perform(Ask{});
    }).with([](Ask, haft::resumption<long(long)> k) { return std::move(k).resume(1) + 1; });
}

static void on_another_thread() {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    pthread_create(
        &thread, &attributes,
        [](void *) -> void * {
            resume_without_end();
            return nullptr;
        },
        nullptr);
    pthread_join(thread, nullptr);
}

static void set_limit(rlim_t size) {
    rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = size;
    setrlimit(RLIMIT_STACK, &limit);
}
static void with_a_lower_limit() {
    haft::handle([] {}).with([](Ask, haft::resumption<void(long)>) {});
    set_limit(512 * 1024);
    resume_without_end();
}
/* Then it ends where something else is in the way. */
static void without_a_limit() {
    set_limit(RLIM_INFINITY);
    auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    void *below = reinterpret_cast<void *>((here - 16 * 1024 * 1024) & ~std::uintptr_t(0xffff));
    if (mmap(below, 0x10000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
        below)
        return;
    resume_without_end();
}

static void resumes_within_resumes_are_reported() {
    static const char expected[] = "haft: the stack of the thread itself, not of a fiber, has "
                                   "overflowed inside of resumes.";
    CHECK_FAULTS(resume_without_end, expected);
    CHECK_FAULTS(resume_without_end, "Let clauses end in tail_resume");
    CHECK_FAULTS(on_another_thread, expected);
    CHECK_FAULTS(with_a_lower_limit, expected);
    CHECK_FAULTS(without_a_limit, expected);
}

/* ---- What is none of Haft's ---- */

static __attribute__((noinline)) int recurse(int depth) {
    volatile char frame[500];
    frame[0] = 1;
    return depth == 1 << 30 ? 0 : recurse(depth + 1) + frame[0];
}
static void recurse_without_end() {
    haft::handle([] { return haft::perform(Ask{}); }).with([](Ask, haft::resumption<long(long)> k) {
        return std::move(k).resume(1);
    });
    recurse(0);
}
static volatile std::uintptr_t nowhere = 8;
static void crash_in_nested_resumes() {
    (void)haft::handle([] {
        for (int i = 0; i < 100; i++)
            haft::perform(Ask{});
        return 0L;
    }).with([n = 0](Ask, haft::resumption<long(long)> k) mutable {
        if (++n == 100)
            *reinterpret_cast<volatile int *>(nowhere) = 1;
        return std::move(k).resume(1) + 1;
    });
}

static void other_faults_are_as_without_haft() {
    check_child_t recursion = check_child(recurse_without_end);
    CHECK_EQUAL(recursion.signal, SIGSEGV);
    CHECK_SAME_TEXT(recursion.output, "");
    check_child_t crash = check_child(crash_in_nested_resumes);
    CHECK_EQUAL(crash.signal, SIGSEGV);
    CHECK_SAME_TEXT(crash.output, "");
}

int main() {
    RUN(resumes_within_resumes_are_reported);
    RUN(other_faults_are_as_without_haft);
    return check_end();
}
// SPDX-License-Identifier: MIT
