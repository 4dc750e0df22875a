/* SPDX-License-Identifier: MIT */
/*
 * Random programs: made from a list of numbers, the choices. A shorter list makes a smaller
 * program: where choices run out, or are 0, comes the least that can stand there.
 */
#ifndef HAFT_FUZZ_RANDOM_PROGRAM_H
#define HAFT_FUZZ_RANDOM_PROGRAM_H

#include "program.h"

#include <cstdint>
#include <deque>
#include <iosfwd>
#include <vector>

class random_program {
  public:
    random_program(std::vector<uint16_t> the_choices, bool with_signals);
    random_program(const random_program &) = delete;
    random_program &operator=(const random_program &) = delete;
    const program_t *get() const { return &program; }

  private:
    std::vector<uint16_t> choices;
    size_t next_choice = 0;
    program_t program{};
    int64_t numbered = 0;
    std::deque<std::vector<statement_t>> bodies;
    std::deque<std::vector<round_t>> rounds;
    std::deque<handler_t> handlers;
    std::vector<const handler_t *> handler_list;

    int choose(int below);
    int choose_effect();
    unsigned choose_effects();
    operation_t choose_operation(int depth);
    body_t make_body(int depth, int most);
    body_t make_careless_body();
    body_t keep(std::vector<statement_t> list);
    void add_visits(std::vector<statement_t> &statements, int depth);
    void add_crowd(std::vector<statement_t> &statements);
    reply_choice_t choose_reply();
    statement_t make_statement(int depth);
    const handler_t *make_handler(int depth);
    void make_rounds(statement_t &statement, int depth);
};

std::ostream &operator<<(std::ostream &stream, const program_t &program);

#endif
