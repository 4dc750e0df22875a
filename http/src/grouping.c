/* SPDX-License-Identifier: MIT */
/*
 * The text of a dump (haft_io_dump_with), where tasks and scopes that look the same are shown once,
 * with their number. A block is a line and all lines below it that are indented further: a scope
 * with its tasks, or a task with its backtrace. Blocks of one parent are the same if their lines
 * are, but for descriptors and times.
 */
#include "exposition.h"

typedef struct {
    const char *bytes;
    size_t size, indent, key; /* `key` bytes count when lines are compared */
    long long since;          /* milliseconds that a task waits; -1: none */
} line_t;

typedef struct {
    size_t from, to; /* lines */
    uint64_t hash;
    size_t count;
    long long least, most; /* milliseconds */
} block_t;

typedef struct {
    FILE *to;
    haft_http_request_t *request; /* whose memory is used */
    line_t *lines;
    int code;
} grouping_t;

/* "task 'NAME' waits for: WHAT on descriptor 7, 12 ms" */
static void read_wait(line_t *line) {
    static const char waits[] = "' waits for: ", descriptor[] = " on descriptor", unit[] = " ms";
    const char *end = line->bytes + line->size;
    const char *at = memmem(line->bytes, line->size, waits, sizeof waits - 1);
    const char *comma = memrchr(line->bytes, ',', line->size);
    if (at == NULL || comma == NULL || comma < at || end - comma < 6 ||
        memcmp(end - 3, unit, 3) != 0)
        return;
    line->since = atoll(comma + 2);
    line->key = (size_t)(comma - line->bytes);
    const char *on =
        memmem(at, line->key - (size_t)(at - line->bytes), descriptor, sizeof descriptor - 1);
    if (on != NULL)
        line->key = (size_t)(on - line->bytes);
}

static size_t split(const char *text, size_t size, line_t *lines) {
    size_t count = 0;
    for (const char *at = text, *end = text + size; at != end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline != NULL ? newline : end) - at), indent = 0;
        while (indent < length && at[indent] == ' ')
            indent++;
        lines[count] =
            (line_t){.bytes = at, .size = length, .indent = indent, .key = length, .since = -1};
        read_wait(&lines[count++]);
        at += length + (newline != NULL);
    }
    return count;
}

static uint64_t hash_of(const line_t *lines, const block_t *block) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = block->from; i < block->to; i++)
        for (size_t j = 0; j <= lines[i].key; j++)
            hash = (hash ^ (j < lines[i].key ? (unsigned char)lines[i].bytes[j] : '\n')) *
                   UINT64_C(1099511628211);
    return hash;
}

static bool are_same(const line_t *lines, const block_t *one, const block_t *other) {
    if (one->hash != other->hash || one->to - one->from != other->to - other->from)
        return false;
    for (size_t i = 0; i < one->to - one->from; i++) {
        const line_t *a = &lines[one->from + i], *b = &lines[other->from + i];
        if (a->key != b->key || memcmp(a->bytes, b->bytes, a->key) != 0)
            return false;
    }
    return true;
}

static int by_hash(const void *left, const void *right) {
    const block_t *a = left, *b = right;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

static int by_place(const void *left, const void *right) {
    const block_t *a = left, *b = right;
    return a->from < b->from ? -1 : a->from > b->from;
}

static size_t count_blocks(const line_t *lines, size_t from, size_t to) {
    size_t count = 0;
    for (size_t i = from; i < to; i++)
        count += lines[i].indent <= lines[from].indent;
    return count;
}

static void find_blocks(const line_t *lines, size_t from, size_t to, block_t *blocks) {
    for (size_t i = from; i < to; blocks++) {
        size_t end = i + 1;
        while (end < to && lines[end].indent > lines[i].indent)
            end++;
        *blocks = (block_t){
            .from = i, .to = end, .count = 1, .least = lines[i].since, .most = lines[i].since};
        blocks->hash = hash_of(lines, blocks);
        i = end;
    }
}

/* Joins equal blocks into the first of them; returns how many are left. */
static size_t join_blocks(const line_t *lines, block_t *blocks, size_t count) {
    size_t left = 0;
    qsort(blocks, count, sizeof *blocks, by_hash);
    for (size_t i = 0; i < count; i++) {
        block_t *last = left != 0 ? &blocks[left - 1] : NULL;
        if (last == NULL || !are_same(lines, last, &blocks[i])) {
            blocks[left++] = blocks[i];
            continue;
        }
        last->count++;
        last->least = blocks[i].least < last->least ? blocks[i].least : last->least;
        last->most = blocks[i].most > last->most ? blocks[i].most : last->most;
    }
    qsort(blocks, left, sizeof *blocks, by_place);
    return left;
}

static void put_head(const grouping_t *grouping, const block_t *block) {
    const line_t *line = &grouping->lines[block->from];
    if (block->count == 1) {
        fprintf(grouping->to, "%.*s\n", (int)line->size, line->bytes);
        return;
    }
    fprintf(grouping->to, "%*s%zu times: %.*s", (int)line->indent, "", block->count,
            (int)(line->key - line->indent), line->bytes + line->indent);
    if (line->since >= 0)
        fprintf(grouping->to, ", %lld to %lld ms", block->least, block->most);
    fputc('\n', grouping->to);
}

/* Lines that are no deeper than the first. The tree is no deeper than the dump indents. */
static void put_blocks(grouping_t *grouping, size_t from, size_t to) {
    if (from == to || grouping->code != 0)
        return;
    size_t count = count_blocks(grouping->lines, from, to);
    block_t *blocks = haft_http_request_allocate(grouping->request, count * sizeof *blocks);
    if (blocks == NULL) {
        grouping->code = -ENOMEM;
        return;
    }
    find_blocks(grouping->lines, from, to, blocks);
    count = join_blocks(grouping->lines, blocks, count);
    for (size_t i = 0; i < count; i++) {
        put_head(grouping, &blocks[i]);
        put_blocks(grouping, blocks[i].from + 1, blocks[i].to);
    }
}

int hafti_http_write_grouped(FILE *to, haft_http_request_t *request, const char *text,
                             size_t size) {
    size_t count = 1;
    for (size_t i = 0; i < size; i++)
        count += text[i] == '\n';
    grouping_t grouping = {.to = to, .request = request};
    grouping.lines = haft_http_request_allocate(request, count * sizeof *grouping.lines);
    if (grouping.lines == NULL)
        return -ENOMEM;
    put_blocks(&grouping, 0, split(text, size, grouping.lines));
    return grouping.code;
}
