// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: blocking work on other threads, files and directories. Part of haft/io.hpp,
 * which includes it.
 */
#ifndef HAFT_IO_FILES_HPP
#define HAFT_IO_FILES_HPP

#include "io_sockets.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <span>
#include <string>
#include <sys/stat.h>
#include <type_traits>
#include <utility>
#include <vector>

namespace haft::io {

namespace detail {
template <typename F>
struct blocking_call {
    F function;
    outcome<std::invoke_result_t<F &>> out = {};

    static void make(void *argument) {
        auto &self = *static_cast<blocking_call *>(argument);
        self.out.take_from(self.function);
    }
    static void leave(void *argument) { delete static_cast<blocking_call *>(argument); }
};
} // namespace detail

/* Calls the function on a thread where it may block, and returns its result or throws its
   exception. A cancel waits for a call that has begun; with_stop_token() lets the call notice the
   cancel. */
template <std::invocable F>
std::invoke_result_t<F &> call_blocking(F function) {
    detail::blocking_call<F &> call{function};
    detail::checked(haft_io_call_blocking(call.make, &call), "call_blocking");
    return call.out.take();
}

/* The same, but a cancel does not wait for a call that has begun: the function goes on alone, its
   result or exception is destroyed, and the end of the run waits for it. So the function must not
   refer to anything that may end before it. */
template <std::invocable F>
std::invoke_result_t<F &> call_or_leave(F function) {
    auto *call = new detail::blocking_call<F>{std::move(function)};
    detail::checked(haft_io_call_or_leave(call->make, call, call->leave), "call_or_leave");
    return std::unique_ptr<detail::blocking_call<F>>(call)->out.take();
}

/* A file. It is also a descriptor, with a position. */
class file : public descriptor {
  public:
    using descriptor::descriptor;
    /* Like open(2). */
    explicit file(const std::string &path, int flags = O_RDONLY, mode_t mode = 0666)
        : descriptor(checked_open(path, flags, mode)) {}
    std::size_t pread(std::int64_t offset, std::span<std::byte> into) const {
        return detail::counted(haft_io_pread(get(), into.data(), into.size(), offset), "pread");
    }
    std::size_t pwrite(std::int64_t offset, std::span<const std::byte> bytes) const {
        return detail::counted(haft_io_pwrite(get(), bytes.data(), bytes.size(), offset), "pwrite");
    }
    /* Returns when the data is on the disk. */
    void fsync() const { detail::checked(haft_io_fsync(get()), "fsync"); }
    /* Sends bytes from `offset`, which it advances, to a socket without copying them through the
       program. Returns how many; 0 at the end of the file. */
    std::size_t send_to(const socket &to, std::int64_t &offset, std::size_t most) const {
        return detail::counted(haft_io_send_file(to.get(), get(), &offset, most), "send_to");
    }

  private:
    static int checked_open(const std::string &path, int flags, mode_t mode) {
        return detail::checked(haft_io_open(path.c_str(), flags, mode), path.c_str());
    }
};

/* Like mkdir(2), remove(3), rename(2), stat(2); the names in a directory, sorted, without "." and
   "..". */
inline void mkdir(const std::string &path, mode_t mode = 0777) {
    detail::checked(haft_io_mkdir(path.c_str(), mode), path.c_str());
}
inline void remove(const std::string &path) {
    detail::checked(haft_io_remove(path.c_str()), path.c_str());
}
inline void rename(const std::string &from, const std::string &to) {
    detail::checked(haft_io_rename(from.c_str(), to.c_str()), from.c_str());
}
inline struct ::stat stat(const std::string &path) {
    struct stat result = {};
    detail::checked(haft_io_stat(path.c_str(), &result), path.c_str());
    return result;
}
inline std::vector<std::string> list_directory(const std::string &path) {
    dirent **entries = nullptr;
    int count = detail::checked(haft_io_list_directory(path.c_str(), &entries), path.c_str());
    auto free_all = [count](dirent **all) {
        std::for_each_n(all, count, std::free);
        std::free(all);
    };
    std::unique_ptr<dirent *, decltype(free_all)> owned(entries, free_all);
    std::vector<std::string> names;
    std::for_each_n(entries, count, [&](const dirent *entry) {
        std::string name = entry->d_name;
        if (name != "." && name != "..")
            names.push_back(std::move(name));
    });
    return names;
}

} // namespace haft::io

#endif
