#!/bin/sh
# Code that does not fit an effect's declaration does not compile, and the compiler reports what is wrong, in C
# and C++. A snippet stands between the markers, with the texts that one of the messages must have.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

# try LANGUAGE CODE: compiles the code inside a function.
try() {
    cat >"$work/snippet.$1" <<EOF
#include <haft.h>
typedef struct line { long words[8]; } line_t;
typedef struct other { char c; } other_t;
HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(name, const char *, { const char *text; });
HAFT_EFFECT(give, line_t, { line_t line; });
HAFT_EFFECT(tell, void, { int value; });
static int tail_ask(void *state, HAFT_PAYLOAD(ask) *payload) { (void)state; return payload->question; }
static double wrong_result(void *state, HAFT_PAYLOAD(ask) *payload) { (void)state, (void)payload; return 0; }
static int wrong_payload(void *state, HAFT_PAYLOAD(name) *payload) { (void)state, (void)payload; return 0; }
static haft_answer_t general_ask(void *state, HAFT_PAYLOAD(ask) *payload, haft_resumption_t k) {
    (void)state, (void)payload; return haft_answer(haft_resumption_resume(k, HAFT_REPLY(ask, 1)));
}
static void *unused[] __attribute__((unused)) = {(void *)tail_ask, (void *)wrong_result,
    (void *)wrong_payload, (void *)general_ask};
$3
void function(haft_fiber_t *k);
void function(haft_fiber_t *k) {
    (void)k;
    $2
}
EOF
    case $1 in
        c) $CC -std=gnu11 -fexceptions -Wall -Wextra -Werror -S -o /dev/null \
            -I"$HAFT_SOURCE_DIR/core/include" "$work/snippet.c" ;;
        cpp) $CXX -std=gnu++20 -Wall -Wextra -Werror -S -o /dev/null \
            -I"$HAFT_SOURCE_DIR/core/include" "$work/snippet.cpp" ;;
    esac >"$work/output" 2>&1
}

# accepts CODE [DECLARATIONS]
accepts() {
    for language in c cpp; do
        if ! try $language "$1" "$2"; then
            echo "$language does not accept: $1 $2"
            cat "$work/output"
            failures=$((failures + 1))
        fi
    done
}

# refuses LANGUAGES MESSAGE CODE [DECLARATIONS]: a basic regular expression for the message
refuses() {
    for language in $1; do
        if try $language "$3" "$4"; then
            echo "$language accepts: $3 $4"
            failures=$((failures + 1))
        elif ! grep -q "$2" "$work/output"; then
            echo "$language does not say \"$2\" of: $3 $4"
            cat "$work/output"
            failures=$((failures + 1))
        fi
    done
}

accepts 'int i = HAFT_PERFORM(ask, 1); (void)i; HAFT_PERFORM(tell, 1);'
accepts 'haft_resume(k, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask)); haft_resume(k, HAFT_REPLY(tell), HAFT_HANDLES());'
accepts 'line_t line = {{0}}; line = HAFT_PERFORM(give, line); haft_resume(k, HAFT_REPLY(give, line), HAFT_HANDLES(give));'
accepts '(void)handler;' 'HAFT_HANDLER(handler, NULL, HAFT_TAIL(ask, tail_ask));'
accepts '(void)handler;' 'HAFT_HANDLER(handler, NULL, HAFT_GENERAL(ask, general_ask));'

# An argument of the wrong type.
refuses 'c cpp' 'ask\|int\|char' 'HAFT_PERFORM(ask, "text");'
refuses 'c cpp' 'const char\|pointer\|integer' 'HAFT_PERFORM(name, 5);'
refuses 'c cpp' 'other_t' 'other_t other = {1}; HAFT_PERFORM(give, other);'
# Too many, and none of that name.
refuses 'c' 'excess elements in struct initializer' 'HAFT_PERFORM(ask, 1, 2);'
refuses 'cpp' 'too many initializers\|excess elements' 'HAFT_PERFORM(ask, 1, 2);'
refuses 'c cpp' 'answer' 'HAFT_PERFORM(ask, .answer = 2);'
# A field left out.
refuses 'c' 'missing.*question' 'HAFT_PERFORM(pair, 1);' 'HAFT_EFFECT(pair, int, { int first; int question; });'
# A result of the wrong type.
refuses 'c cpp' 'char' 'char *text = HAFT_PERFORM(ask, 1); (void)text;'
refuses 'c cpp' 'void' 'int i = HAFT_PERFORM(tell, 1); (void)i;'
refuses 'c cpp' 'line' 'other_t other = HAFT_PERFORM(give, (line_t){{0}}); (void)other;'
# A reply of the wrong type, none, or one too many.
refuses 'c cpp' 'char' 'haft_resume(k, HAFT_REPLY(ask, "text"), HAFT_HANDLES(ask));'
refuses 'c cpp' 'other_t' 'other_t other = {1}; haft_resume(k, HAFT_REPLY(give, other), HAFT_HANDLES(ask));'
refuses 'c' 'HAFT_REPLY(ask) takes a value exactly if the effect has a result' \
    'haft_resume(k, HAFT_REPLY(ask), HAFT_HANDLES(ask));'
refuses 'cpp' 'HAFT_REPLY takes a value exactly if the effect has a result' \
    'haft_resume(k, HAFT_REPLY(ask), HAFT_HANDLES(ask));'
refuses 'c cpp' 'takes a value exactly if the effect has a result' \
    'haft_resume(k, HAFT_REPLY(tell, 1), HAFT_HANDLES(tell));'
# Clauses that do not fit.
refuses 'c' 'the clause wrong_result does not have the type for effect ask' '(void)handler;' \
    'HAFT_HANDLER(handler, NULL, HAFT_TAIL(ask, wrong_result));'
refuses 'c' 'the clause wrong_payload does not have the type for effect ask' '(void)handler;' \
    'HAFT_HANDLER(handler, NULL, HAFT_TAIL(ask, wrong_payload));'
refuses 'c' 'the clause general_ask does not have the type for effect ask' '(void)handler;' \
    'HAFT_HANDLER(handler, NULL, HAFT_TAIL(ask, general_ask));'
refuses 'c' 'the clause tail_ask does not have the type for effect ask' '(void)handler;' \
    'HAFT_HANDLER(handler, NULL, HAFT_GENERAL(ask, tail_ask));'
refuses 'cpp' 'wrong_result\|double' '(void)handler;' \
    'HAFT_HANDLER(handler, NULL, HAFT_TAIL(ask, wrong_result));'
refuses 'cpp' 'wrong_payload\|haft_payload_name' '(void)handler;' \
    'HAFT_HANDLER(handler, NULL, HAFT_TAIL(ask, wrong_payload));'
refuses 'cpp' 'general_ask\|haft_resumption_t' '(void)handler;' \
    'HAFT_HANDLER(handler, NULL, HAFT_TAIL(ask, general_ask));'
refuses 'c cpp' 'int' 'HAFT_SET_DEFAULT(ask, wrong_result);'
# A return forgotten before haft_tail_resume.
refuses 'c cpp' 'warn_unused_result\|unused-result' '(void)forgetful;' \
    'static haft_answer_t forgetful(haft_resumption_t k) { haft_tail_resume(k, HAFT_REPLY(ask, 1)); return haft_answer((void *)0); }'
# Effects that nobody declared.
refuses 'c cpp' 'nonesuch' 'HAFT_PERFORM(nonesuch, 1);'
refuses 'c cpp' 'nonesuch' 'haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask, nonesuch));'
# The same name twice with different types in one unit.
refuses 'c cpp' 'redefinition\|conflicting' ';' 'HAFT_EFFECT(ask, double, {});'
# A sanitizer of clang's that keeps a second stack.
echo 'int main(void) { return 0; }' >"$work/plain.c"
if $CC -fsanitize=safe-stack -fsyntax-only "$work/plain.c" 2>/dev/null; then
    compiler=$CC
    CC="$compiler -fsanitize=safe-stack"
    refuses c 'do not work with -fsanitize=safe-stack' ';'
    CC=$compiler
fi

# gcc: vector registers that the switch cannot name. The assembler reports it, once anything is optimised.
if echo | $CC -E -dM - | grep -q __x86_64__ && ! echo | $CC -E -dM - | grep -q '__clang__\|__AVX512F__'; then
    for level in -Og -O2 -O3; do
        for target in '' 'avx2' 'avx512f' 'avx512bw'; do
            attribute=${target:+"__attribute__((target(\"$target\")))"}
            cat >"$work/wide.c" <<EOF
#include <haft.h>
HAFT_EFFECT(ask, int, { int question; });
int function(haft_fiber_t *k, int value);
$attribute int function(haft_fiber_t *k, int value) {
    value += HAFT_PERFORM(ask, 1);
    return haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask)).payload == 0 ? value : 0;
}
EOF
            $CC -std=gnu11 $level -fexceptions -c -o "$work/wide.o" -I"$HAFT_SOURCE_DIR/core/include" \
                "$work/wide.c" >"$work/output" 2>&1
            status=$?
            case $status,$target in
                0, | 0,avx2) continue ;;
                *,avx512*) grep -q 'a function with AVX-512 by an attribute performs' "$work/output" && continue ;;
            esac
            echo "gcc $level, target '$target': status $status"
            cat "$work/output"
            failures=$((failures + 1))
        done
    done
fi

[ "$failures" -eq 0 ]
# SPDX-License-Identifier: MIT
