#!/bin/sh
# SPDX-License-Identifier: MIT
# The compiler's message for a function of the wrong type: one error, in words.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect WORDS STATEMENT: a server of this statement does not compile, for this one reason.
expect() {
  cat >"$work/wrong.cpp" <<END
#include <haft/http.hpp>
struct now : haft::effect<int> {};
int main() {
    haft::http::server server;
    $2
}
END
  if $CXX -std=c++20 -fsyntax-only -I"$HAFT_SOURCE_DIR/core/include" -I"$HAFT_SOURCE_DIR/cpp/include" \
    -I"$HAFT_SOURCE_DIR/io/include" -I"$HAFT_SOURCE_DIR/http/include" "$work/wrong.cpp" 2>"$work/said"; then
    echo "compiles: $2"
    failed=1
  elif [ "$(grep -c ' error: ' "$work/said")" != 1 ] || ! grep ' error: ' "$work/said" | grep -q "$1"; then
    echo "$2"
    grep ' error: ' "$work/said"
    failed=1
  fi
}

handler='a handler takes haft::http::request &, and returns a text, a haft::http::response, or nothing'
expect "$handler" 'server.get("/", [] { return "no request"; });'
expect "$handler" 'server.get("/", [](int) { return "no request"; });'
expect "$handler" 'server.post("/", [](haft::http::request &) { return 7; });'
expect "$handler" 'server.any("/", [](haft::http::request) { return "a copy"; });'
expect "$handler" 'server.on_connect([](haft::http::request &) { return 7; });'
expect 'middleware takes haft::http::request &, and const haft::http::next &' \
  'server.use([](haft::http::request &) {});'
expect 'what handles an effect takes the effect, or haft::http::request & and the effect' \
  'server.handle([](int) { return 1; });'
expect 'what answers errors takes haft::http::request &, and const haft_http_error_t &' \
  'server.on_error([](haft::http::request &) { return "sorry"; });'
exit $failed
