// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: tasks, scopes, synchronisation and I/O over haft/io.h, headers only.
 *
 *     #include <haft/io.hpp>
 *     namespace io = haft::io;
 *
 *     int main() {
 *         io::listener listener("::", 7000);
 *         io::run([&] {
 *             io::supervise([&] { // one connection that fails does not end the others
 *                 for (io::socket connection : listener)
 *                     io::spawn([connection = std::move(connection)] {
 *                         for (std::string_view line : io::lines(connection))
 *                             connection.write_all(line);
 *                     });
 *             });
 *         });
 *     }
 *
 * haft/io.h defines what a wait is, in which order waiters are served, and on which thread a task
 * runs; its functions work with everything here. Each file that is included here has a subject, and
 * uses only those above it:
 *
 *     io_detail.hpp       how values and exceptions travel through tasks of C
 *     io_options.hpp      option structs, made of one list each
 *     io_time.hpp         the clock, deadlines, sleeping
 *     io_scopes.hpp       runs, simulations, scopes, deadlines of blocks
 *     io_tasks.hpp        tasks, several functions at once, values of tasks
 *     io_sync.hpp         locks, conditions, semaphores, events, barriers, once flags
 *     io_stop_tokens.hpp  cancels as stop tokens, and stop tokens as cancels
 *     io_promises.hpp     promises and futures
 *     io_channels.hpp     channels, select()
 *     io_descriptors.hpp  descriptors, pipes, lines, gathered writes
 *     io_sockets.hpp      addresses, connections, listeners, datagrams
 *     io_files.hpp        blocking work, files, directories
 *     io_processes.hpp    signals, child processes
 *
 * A scope waits for its tasks after its body has returned. By then the local variables of the body
 * (or of run()'s body) are gone. So declare what tasks refer to outside of the scope, or capture it
 * by value, or join the tasks in the body.
 *
 * Errors are std::system_error with a code of the generic category, which compares with std::errc.
 * Functions ending in _until or _for give up at a time. Functions that the standard library has
 * under the same name return false then; the others throw std::errc::timed_out.
 *
 * Exceptions: an exception that leaves the body or a task of a scope cancels the scope; when all of
 * its tasks have ended, the scope throws the exception where it was opened. If there were several,
 * the scope throws the first and gives the others to scope_options::failures, or writes them to
 * standard error if that is not set. An exception that a join has thrown belongs to the joiner: the
 * scope throws it only if it leaves the body or a task again, or if the body is interrupted
 * afterwards.
 *
 * A cancel is the exception haft::io::cancelled, thrown by the wait that it interrupts and by every
 * later wait outside of shield(); so catching it only delays it. A wait in a destructor throws it,
 * too: the destructor must catch it, or wait inside shield(). `cancelled` ends a task quietly. A
 * cancelled scope returns its body's result if the body has returned; otherwise it throws
 * `cancelled`.
 *
 * haft_io_fail, and tasks started by C's haft_io_spawn, unwind without an exception object:
 * destructors run, and only catch (...) notices, which rethrows where it ends.
 */
#ifndef HAFT_IO_HPP
#define HAFT_IO_HPP

/* The same test as in haft.hpp. */
#if __cplusplus <= 201703L
#    error "haft/io.hpp is C++20: compile with -std=c++20 or later"
#    include <haft/io.hpp is C++20>
#elif !defined(__cpp_exceptions)
#    error "haft/io.hpp needs exceptions: compile without -fno-exceptions"
#    include <haft/io.hpp needs exceptions>
#elif !__has_include(<stop_token>)
#    error "haft/io.hpp needs std::stop_token, which this standard library does not have"
#    include <haft/io.hpp needs std::stop_token>
#endif

#include "io_channels.hpp"
#include "io_descriptors.hpp"
#include "io_files.hpp"
#include "io_options.hpp"
#include "io_processes.hpp"
#include "io_promises.hpp"
#include "io_scopes.hpp"
#include "io_sockets.hpp"
#include "io_stop_tokens.hpp"
#include "io_sync.hpp"
#include "io_tasks.hpp"
#include "io_time.hpp"

#endif
