// SPDX-License-Identifier: MIT
/* Programs that end by an abort. */
#ifndef HAFT_TESTS_LAST_WORDS_HPP
#define HAFT_TESTS_LAST_WORDS_HPP

#include "check.hpp"

#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

/* Returns what a process that runs it prints on standard error before it aborts. */
inline std::string last_words(void (*run)()) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        run();
        _exit(0);
    }
    close(ends[1]);
    std::string text;
    char part[256];
    for (ssize_t size; (size = read(ends[0], part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(size));
    close(ends[0]);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return text;
}

#endif
