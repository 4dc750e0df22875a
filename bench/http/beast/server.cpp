// SPDX-License-Identifier: MIT
/* `beast PORT`: the answer of ../load.c by Boost.Beast, in callbacks on a context of one thread. */
#include <utility> /* which Asio 1.74 forgets */

#include <boost/asio.hpp>
#include <boost/beast.hpp>

#include <cstdlib>
#include <memory>
#include <string>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

namespace {

using socket_t = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;

const std::string body(1024, 'x');

class session : public std::enable_shared_from_this<session> {
  public:
    explicit session(socket_t socket) : socket_(std::move(socket)) {}

    void read() {
        request_ = {};
        http::async_read(socket_, buffer_, request_,
                         [self = shared_from_this()](beast::error_code code, std::size_t) {
                             if (!code)
                                 self->answer();
                         });
    }

  private:
    void answer() {
        response_ = {http::status::ok, request_.version()};
        response_.set(http::field::content_type, "text/plain");
        response_.body() = {body.data(), body.size()};
        response_.prepare_payload();
        response_.keep_alive(request_.keep_alive());
        http::async_write(socket_, response_,
                          [self = shared_from_this()](beast::error_code code, std::size_t) {
                              if (!code && self->response_.keep_alive())
                                  self->read();
                          });
    }

    socket_t socket_;
    beast::flat_static_buffer<4096> buffer_;
    http::request<http::empty_body> request_;
    http::response<http::span_body<const char>> response_;
};

void accept(tcp::acceptor &acceptor, asio::io_context &context) {
    acceptor.async_accept(context, [&](beast::error_code code, socket_t socket) {
        if (!code) {
            socket.set_option(tcp::no_delay(true));
            std::make_shared<session>(std::move(socket))->read();
        }
        accept(acceptor, context);
    });
}

} // namespace

int main(int count, char **arguments) {
    asio::io_context context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE);
    auto port = static_cast<unsigned short>(std::atoi(arguments[count - 1]));
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), port});
    accept(acceptor, context);
    context.run();
}
