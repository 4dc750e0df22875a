// SPDX-License-Identifier: MIT
/* Static files: `files_cpp FOLDER`, then look at http://localhost:8080/. Its second argument is
   another port. */
#include <haft/http.hpp>

#include <cstdlib>
#include <iostream>

int main(int count, char **arguments) try {
    haft::http::server server;
    server.files("/", count > 1 ? arguments[1] : ".",
                 {.cache_control = "max-age=60", .precompressed = true});
    return server.run(
        {.port = count > 2 ? std::uint16_t(std::atoi(arguments[2])) : std::uint16_t(8080),
         .threads = HAFT_HTTP_EACH_PROCESSOR});
} catch (const std::exception &failure) {
    return std::cerr << failure.what() << '\n', 1;
}
