// SPDX-License-Identifier: MIT
/* A toolkit's loop in a task, where that has a function that does what there is to do, as Qt has
   processEvents: the task calls it when the toolkit's descriptor (such as a display's) is readable, and
   every 16 ms besides. The other tasks go on meanwhile, and what they tell the toolkit is a call. */
#include <haft/io.hpp>

#include <functional>
#include <iostream>
#include <poll.h>
#include <queue>

namespace io = haft::io;
using namespace std::chrono_literals;

/* Plays the toolkit: it knows nothing of tasks. */
class toolkit {
  public:
    toolkit() { haft_io_pipe(ends); }
    int descriptor() const { return ends[0]; }
    void post(std::function<void()> event) { /* on any task */
        events.push(std::move(event));
        haft_io_write(ends[1], "", 1);
    }
    void process_events() {
        for (char byte; !events.empty(); events.pop()) {
            haft_io_read(ends[0], &byte, 1);
            events.front()();
        }
    }
    ~toolkit() {
        haft_io_close(ends[0]);
        haft_io_close(ends[1]);
    }

  private:
    int ends[2];
    std::queue<std::function<void()>> events;
};

int main() {
    io::run([] {
        toolkit screen;
        bool is_open = true;
        auto talk = [&] {
            for (int i = 3; i > 0; i--) {
                io::sleep_for(10ms);
                screen.post([i] { std::cout << i << " left\n"; });
            }
            screen.post([&] { is_open = false; });
        };
        io::scope([&] {
            io::spawn(talk);
            while (is_open) {
                pollfd entry = {screen.descriptor(), POLLIN, 0};
                haft_io_poll(&entry, 1, haft_io_now() + 16 * HAFT_IO_MILLISECOND);
                screen.process_events();
            }
        });
        std::cout << "the window is closed\n";
    });
}
