// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: descriptors, pipes, lines and gathered writes. Part of haft/io.hpp, which
 * includes it.
 *
 * A descriptor is closed once, by its owner. `lines` and `writer` refer to a stream that outlives
 * them, and read its number anew in each call, so that the stream may be moved in between.
 */
#ifndef HAFT_IO_DESCRIPTORS_HPP
#define HAFT_IO_DESCRIPTORS_HPP

#include "io_time.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/uio.h>
#include <utility>

namespace haft::io {

/*
 * Bytes read into memory that the library lends (haft_io_read_lent); a range. Move-only; gives the
 * memory back. Empty at the end of the stream.
 *
 *     for (io::lent bytes; connection.read(bytes);)
 *         connection.write_all(bytes);
 */
class lent {
  public:
    lent() = default;
    lent(lent &&other) noexcept
        : first(std::exchange(other.first, nullptr)), count(std::exchange(other.count, 0)) {}
    lent &operator=(lent &&other) noexcept {
        lent moved(std::move(other)); /* the memory held until now is given back here */
        std::swap(first, moved.first);
        std::swap(count, moved.count);
        return *this;
    }
    ~lent() { haft_io_give_back(first); }

    const std::byte *data() const { return static_cast<const std::byte *>(first); }
    std::size_t size() const { return count; }
    bool empty() const { return count == 0; }
    const std::byte *begin() const { return data(); }
    const std::byte *end() const { return data() + count; }
    std::string_view text() const { return {static_cast<const char *>(first), count}; }

  private:
    friend class descriptor;
    const void *first = nullptr;
    std::size_t count = 0;
};

/* Owns a descriptor, and closes it. Move-only. Its functions work outside of a run, too, where they
   block. */
class descriptor {
  public:
    descriptor() = default;
    explicit descriptor(int owned) : number(owned) {}
    descriptor(descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
    descriptor &operator=(descriptor &&other) noexcept {
        descriptor moved(std::move(other)); /* the descriptor held until now is closed here */
        std::swap(number, moved.number);
        return *this;
    }
    ~descriptor() { close(); }

    int get() const { return number; }
    int release() { return std::exchange(number, -1); }
    explicit operator bool() const { return number >= 0; }
    /* Closes the descriptor. Waits of other tasks on it end with std::errc::bad_file_descriptor. */
    void close() noexcept {
        if (number >= 0)
            haft_io_close(std::exchange(number, -1));
    }

    /* Returns how many bytes were read; 0 at the end of the stream. */
    std::size_t read(std::span<std::byte> into) const {
        return detail::counted(haft_io_read(number, into.data(), into.size()), "read");
    }
    std::size_t read(std::span<char> into) const { return read(std::as_writable_bytes(into)); }
    std::size_t read(std::span<const iovec> into) const {
        return detail::counted(haft_io_readv(number, into.data(), into.size()), "read");
    }
    /* Gives the memory of `into` back, then waits and reads. False at the end of the stream. */
    bool read(lent &into) const {
        into.count = 0;
        into.count = detail::counted(haft_io_read_lent(number, &into.first), "read");
        return into.count != 0;
    }
    /* Reads everything up to the end of the stream. */
    std::string read_all() const {
        std::string text;
        for (std::size_t size = 0, got = 1; got != 0; size += got) {
            text.resize(size + 4096);
            got = read(std::span(text).subspan(size));
            text.resize(size + got);
        }
        return text;
    }
    /* Fewer bytes than there is room for only at the end. */
    std::size_t read_all(std::span<std::byte> into) const {
        return detail::counted(haft_io_read_all(number, into.data(), into.size()), "read_all");
    }
    /* Returns how many bytes were written, at least one. */
    std::size_t write(std::span<const std::byte> bytes) const {
        return detail::counted(haft_io_write(number, bytes.data(), bytes.size()), "write");
    }
    std::size_t write(std::span<const iovec> parts) const {
        return detail::counted(haft_io_writev(number, parts.data(), parts.size()), "write");
    }
    void write_all(std::span<const std::byte> bytes) const {
        detail::checked(haft_io_write_all(number, bytes.data(), bytes.size()), "write_all");
    }
    void write_all(std::string_view text) const { write_all(std::as_bytes(std::span(text))); }
    /* Waits for any of these events of poll(2); returns the ones that have come. */
    short wait_ready(short events) const {
        return static_cast<short>(
            detail::checked(haft_io_wait_ready(number, events), "wait_ready"));
    }
    /* The same; 0: the time has come. */
    template <typename Clock, typename Duration>
    short wait_ready_until(short events, std::chrono::time_point<Clock, Duration> time) const {
        int code = haft_io_wait_ready_until(number, events, detail::deadline_of(time));
        return detail::in_time(code, "wait_ready") ? static_cast<short>(code) : short(0);
    }

  private:
    int number = -1;
};

/* A case of select(): any of these events of poll(2) has come; the function gets the ones that have
   come. */
template <typename F>
struct on_ready {
    on_ready(const descriptor &awaited, short wanted, F call)
        : number(awaited.get()), events(wanted), function(std::move(call)) {}
    haft_io_select_case_t choice() {
        haft_io_select_case_t made = {};
        made.descriptor = number;
        made.events = events;
        return made;
    }
    void done(int came) { function(static_cast<short>(came)); }

  private:
    int number;
    short events;
    F function;
};

struct pipe_ends {
    descriptor read, write;
};
inline pipe_ends pipe() {
    int ends[2];
    detail::checked(haft_io_pipe(ends), "pipe");
    return {descriptor(ends[0]), descriptor(ends[1])};
}

/* The lines of a stream, each with its '\n'; bytes after the last '\n' are a line without one. A
   line is valid until the next. A line longer than `most`, counting its '\n', throws
   std::length_error. The stream must outlive this object. */
class lines {
  public:
    explicit lines(const descriptor &stream, std::size_t most = 1 << 20)
        : from(&stream), longest(std::min(most, std::string().max_size() - 1)) {}
    explicit lines(const descriptor &&, std::size_t = 0) = delete;

    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = std::string_view;
        using difference_type = std::ptrdiff_t;
        explicit iterator(lines &in) : of(&in) {}
        std::string_view operator*() const { return of->current(); }
        iterator &operator++() {
            of->advance();
            return *this;
        }
        void operator++(int) { of->advance(); }
        bool operator==(std::default_sentinel_t) const { return of->current().empty(); }

      private:
        lines *of;
    };
    /* Continues at the line where another iterator stopped. */
    iterator begin() {
        passed = false;
        return iterator(*this);
    }
    std::default_sentinel_t end() const { return {}; }
    /* Reads, as descriptor::read, what follows the line that an iterator last returned, and
       invalidates that line. The next line begins after the bytes that this has read. */
    std::size_t read(std::span<std::byte> into) {
        prepare();
        std::size_t got =
            detail::counted(haft_io_reader_read(&reader, into.data(), into.size()), "read");
        size = 0;
        passed = true;
        return got;
    }
    /* Fewer bytes than there is room for only at the end. */
    std::size_t read_all(std::span<std::byte> into) {
        std::size_t got = 0;
        for (std::size_t more = 1; got < into.size() && more != 0; got += more)
            more = read(into.subspan(got));
        return got;
    }

  private:
    void prepare() {
        reader.descriptor = from->get();
        reader.memory = buffer.data();
        reader.size = buffer.size();
    }
    /* Reads only when it is asked for a line. */
    std::string_view current() {
        passed = false;
        while (size == 0) {
            prepare();
            char *line;
            ssize_t got = haft_io_reader_line(&reader, &line);
            if (got != -EMSGSIZE) {
                size = detail::counted(got, "read");
                break;
            }
            if (buffer.size() > longest)
                throw std::length_error("haft: a line is too long");
            buffer.resize(std::min(2 * buffer.size() + 4096, longest + 1));
        }
        return std::string_view(buffer).substr(reader.start - size, size);
    }
    void advance() {
        if (!passed)
            current();
        passed = false;
        size = 0;
    }

    const descriptor *from;
    std::size_t longest;
    std::string buffer;
    haft_io_reader_t reader = {};
    std::size_t size = 0; /* of the current line; 0: not read yet */
    bool passed = false;  /* the current line was read past before an iterator continues */
};

/* Gathers what is written to a stream, which must outlive this object; flush() writes it. The
   destructor does not wait, so bytes that were never flushed are lost. */
class writer {
  public:
    explicit writer(const descriptor &stream, std::size_t size = 1 << 14) : to(&stream) {
        memory.resize(size);
    }
    explicit writer(const descriptor &&, std::size_t = 0) = delete;
    void write(std::span<const std::byte> bytes) {
        prepare();
        detail::checked(haft_io_writer_write(&state, bytes.data(), bytes.size()), "write");
    }
    void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
    void flush() {
        prepare();
        detail::checked(haft_io_writer_flush(&state), "flush");
    }
    std::size_t gathered() const { return state.end - state.start; }

  private:
    /* Either object may have been moved. */
    void prepare() {
        state.descriptor = to->get();
        state.memory = memory.data();
        state.size = memory.size();
    }
    const descriptor *to;
    std::string memory;
    haft_io_writer_t state = {};
};

} // namespace haft::io

#endif
