// SPDX-License-Identifier: MIT
/*
 * A crawler: `crawler URL AT_ONCE` asks for the page, and for all pages of the same site that it
 * leads to, each once and so many at once, and prints what it has got for each.
 */
#include <haft/http.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

class crawler {
  public:
    crawler(const std::string &url, std::size_t at_once)
        : site(url.substr(0, url.find('/', url.find("//") + 2))), client({.kept = at_once}),
          turns(at_once) {
        io::scope([&](io::scope_ref pages) { visit(url.substr(site.size()), "/", pages); });
    }
    /* Paths, with the status of the page or with what has failed. */
    std::map<std::string, std::string> found;

  private:
    void visit(std::string link, const std::string &base, io::scope_ref pages) {
        link = link.substr(0, link.find('#'));
        if (link.starts_with(site))
            link.erase(0, site.size());
        else if (link.find(':') < link.find('/') || link.starts_with("//"))
            return; /* another site, or no page */
        std::string path =
            link.starts_with('/') ? link : base.substr(0, base.rfind('/') + 1) + link;
        auto [entry, is_new] = found.try_emplace(path);
        if (is_new)
            pages.spawn(
                [this, path, pages, &result = entry->second] { result = read(path, pages); });
    }

    /* Takes its turn for one page, and visits what that leads to. */
    std::string read(const std::string &path, io::scope_ref pages) try {
        turns.acquire();
        std::unique_ptr<io::semaphore, void (*)(io::semaphore *)> turn(
            &turns, [](io::semaphore *of) { of->release(); });
        io::deadline soon(10s);
        http::reply reply = client.get(site + path);
        if (reply.status() != 200 ||
            !reply.header("Content-Type").value_or("").starts_with("text/html"))
            return std::to_string(reply.status());
        static constexpr std::string_view begin = "href=\"";
        std::string_view text = reply.body();
        for (auto at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
            at += begin.size();
            visit(std::string(text.substr(at, text.find('"', at) - at)), path, pages);
        }
        return "200";
    } catch (const std::system_error &failure) {
        return failure.what();
    }

    std::string site;
    http::client client;
    io::semaphore turns;
};

int main(int count, char **arguments) {
    if (count < 2)
        return std::cerr << "usage: crawler URL [AT_ONCE]\n", 2;
    io::run([&] {
        int at_once = count > 2 ? std::atoi(arguments[2]) : 8;
        crawler all(arguments[1], std::size_t(std::max(at_once, 1)));
        for (const auto &[path, result] : all.found)
            std::cout << path << ": " << result << '\n';
    });
}
