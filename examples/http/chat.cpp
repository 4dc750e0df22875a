// SPDX-License-Identifier: MIT
/* A chat over WebSocket: open http://localhost:8080/ in several windows. Its argument is another
   port. All handlers run on one thread, so the set of guests needs no lock. */
#include <haft/http.hpp>

#include <cstdlib>
#include <set>

static const char page[] = R"(<!doctype html><title>Chat</title>
<form><input name=text autofocus></form><ul></ul><script>
const list = document.querySelector('ul'), form = document.querySelector('form');
const socket = new WebSocket(location.origin.replace('http', 'ws') + '/chat');
socket.onmessage = event =>
  list.append(Object.assign(document.createElement('li'), {textContent: event.data}));
form.onsubmit = event => {
  event.preventDefault();
  socket.send(form.text.value);
  form.reset();
};
</script>
)";

using texts = haft::io::channel<std::string>;

/* A browser in the chat: in the set for as long as it lives. */
class guest {
  public:
    explicit guest(std::set<texts *> &in) : all(in) { all.insert(&heard); }
    ~guest() { all.erase(&heard); }
    texts heard{16};

  private:
    std::set<texts *> &all;
};

int main(int count, char **arguments) {
    std::set<texts *> guests;
    haft::http::server server;
    server.get("/", [](haft::http::request &) {
        return haft::http::response{.body = page, .type = "text/html; charset=utf-8"};
    });
    server.get("/chat", [&](haft::http::request &request) {
        auto socket = haft::http::websocket::accept(request);
        guest self(guests);
        haft::io::scope([&] {
            /* A task of its own, so that a guest whose connection is slow holds up nobody. */
            haft::io::spawn([&] {
                while (auto text = self.heard.receive())
                    if (!socket.send(*text))
                        break;
            });
            while (auto message = socket.receive())
                if (message->is_text)
                    for (texts *heard : guests) /* one that is 16 behind misses it */
                        heard->try_send(std::string(message->bytes));
            self.heard.close();
        });
    });
    return server.run(
        {.port = count > 1 ? std::uint16_t(std::atoi(arguments[1])) : std::uint16_t(8080)});
}
