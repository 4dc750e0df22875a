// SPDX-License-Identifier: MIT
/* Server-sent events: what one browser sends, all get. Open http://localhost:8080/ in several
   windows. Its argument is another port. All handlers run on one thread, so the set of listeners
   needs no lock. */
#include <haft/http.hpp>

#include <cstdlib>
#include <set>

static const char page[] = R"(<!doctype html><title>Events</title>
<form><input name=text autofocus></form><ul></ul><script>
const list = document.querySelector('ul'), form = document.querySelector('form');
new EventSource('/events').onmessage = event =>
  list.append(Object.assign(document.createElement('li'), {textContent: event.data}));
form.onsubmit = event => {
  event.preventDefault();
  fetch('/say', {method: 'POST', body: new URLSearchParams(new FormData(form))});
  form.reset();
};
</script>
)";

using texts = haft::io::channel<std::string>;

/* A browser that listens: in the set for as long as it lives. */
class listener {
  public:
    explicit listener(std::set<texts *> &in) : all(in) { all.insert(&heard); }
    ~listener() { all.erase(&heard); }
    texts heard{16};

  private:
    std::set<texts *> &all;
};

int main(int count, char **arguments) {
    std::set<texts *> listeners;
    haft::http::server server;
    server.get("/", [](haft::http::request &) {
        return haft::http::response{.body = page, .type = "text/html; charset=utf-8"};
    });
    server.get("/events", [&](haft::http::request &request) {
        listener self(listeners);
        request.begin_events();
        while (auto text = request.receive(self.heard))
            request.send_event({.data = *text});
    });
    server.post("/say", [&](haft::http::request &request) {
        auto text = request.form("text");
        if (!text.has_value())
            throw haft::http::error(400, "text=..., please\n");
        for (texts *heard : listeners)
            heard->try_send(std::string(*text)); /* one that is 16 texts behind misses it */
        return haft::http::response{.status = 204};
    });
    return server.run(
        {.port = count > 1 ? std::uint16_t(std::atoi(arguments[1])) : std::uint16_t(8080)});
}
