/* SPDX-License-Identifier: MIT */
/*
 * Routes: a tree with a node for each part of a path. A search takes the first of: the part's text,
 * {name}, and {name...}; where a choice leads nowhere, or to no handler for the method, the next is
 * tried. No node is looked at twice.
 */
#include "routes.h"

#include <stdio.h>
#include <stdlib.h>

struct hafti_http_node {
    char *text; /* of the part; "" of one that captures: its name is the route's */
    size_t size;
    hafti_http_node_t *sibling;
    hafti_http_node_t *texts, *capture, *rest;
    hafti_http_entry_t *entries;
};

static hafti_http_node_t *node_new(const char *text, size_t size) {
    hafti_http_node_t *node = calloc(1, sizeof *node);
    if (node != NULL && (node->text = strndup(text, size)) == NULL) {
        free(node);
        return NULL;
    }
    if (node != NULL)
        node->size = size;
    return node;
}

static hafti_http_node_t *child_with_text(hafti_http_node_t *first, const char *text, size_t size) {
    for (hafti_http_node_t *node = first; node != NULL; node = node->sibling)
        if (node->size == size && memcmp(node->text, text, size) == 0)
            return node;
    return NULL;
}

/* The name in a part of a pattern, {name} or {name...}; of size 0: it is neither. */
static hafti_http_text_t name_in(hafti_http_text_t part, bool *is_rest) {
    *is_rest = false;
    if (part.size < 3 || *part.bytes != '{' || part.bytes[part.size - 1] != '}')
        return (hafti_http_text_t){"", 0};
    hafti_http_text_t name = {part.bytes + 1, part.size - 2};
    *is_rest = name.size > 3 && memcmp(name.bytes + name.size - 3, "...", 3) == 0;
    name.size -= *is_rest ? 3 : 0;
    return name;
}

/* The child for a part of a pattern, which is made if it is not there. Parts that capture are one
   child, whatever they are called. */
static hafti_http_node_t *child_for(hafti_http_node_t *node, hafti_http_text_t part) {
    bool is_rest, captures = name_in(part, &is_rest).size != 0;
    hafti_http_node_t **children = is_rest ? &node->rest : captures ? &node->capture : &node->texts;
    if (captures)
        part = (hafti_http_text_t){"", 0};
    hafti_http_node_t *child = child_with_text(*children, part.bytes, part.size);
    if (child == NULL && (child = node_new(part.bytes, part.size)) != NULL) {
        child->sibling = *children;
        *children = child;
    }
    return child;
}

/* The mistake in a part, and what to write instead; NULL: none. Braces are around a whole part, and
   nowhere else; {name...} stands `at_end` only. */
static const char *mistake_in(hafti_http_text_t part, bool at_end) {
    bool is_rest;
    hafti_http_text_t name = name_in(part, &is_rest);
    if (name.size != 0 && !hafti_http_is_token(name.bytes, name.size))
        return "the name in {name} is made of letters, digits and '_'";
    if (name.size != 0)
        return at_end || !is_rest ? NULL : "{name...} takes the rest, so it stands at the end";
    if (part.size != 0 && *part.bytes == ':')
        return "a part that captures is written {name}, not :name";
    if (part.size != 0 && *part.bytes == '*')
        return "a part that takes the rest is written {name...}, not *";
    if (memchr(part.bytes, '{', part.size) != NULL || memchr(part.bytes, '}', part.size) != NULL)
        return "braces stand around a whole part, with a name in them: {name}";
    return NULL;
}

static bool next_of_path(hafti_http_text_t *path, hafti_http_text_t *part) {
    if (path->bytes == NULL)
        return false;
    const char *end = memchr(path->bytes, '/', path->size);
    *part =
        (hafti_http_text_t){path->bytes, end != NULL ? (size_t)(end - path->bytes) : path->size};
    *path = end != NULL ? (hafti_http_text_t){end + 1, path->size - part->size - 1}
                        : (hafti_http_text_t){NULL, 0};
    return true;
}

/* Whether a name of a pattern stands in it again. */
static bool has_twice(hafti_http_text_t path) {
    bool is_rest;
    for (hafti_http_text_t part; next_of_path(&path, &part);) {
        hafti_http_text_t name = name_in(part, &is_rest), after = path;
        for (hafti_http_text_t other; name.size != 0 && next_of_path(&after, &other);) {
            hafti_http_text_t its = name_in(other, &is_rest);
            if (its.size == name.size && memcmp(its.bytes, name.bytes, name.size) == 0)
                return true;
        }
    }
    return false;
}

static const char *mistake_in_pattern(hafti_http_text_t path) {
    size_t parts = 0, captures = 0;
    const char *mistake = NULL;
    hafti_http_text_t whole = path;
    for (hafti_http_text_t part; mistake == NULL && next_of_path(&path, &part); parts++) {
        mistake = mistake_in(part, path.bytes == NULL);
        captures += part.size != 0 && *part.bytes == '{';
    }
    if (mistake == NULL && (parts > HAFTI_HTTP_PARTS || captures > HAFTI_HTTP_CAPTURES))
        mistake = "the path has too many parts";
    if (mistake == NULL && has_twice(whole))
        mistake = "a name stands there twice: give each {name} its own";
    return mistake;
}

static void free_entry(hafti_http_entry_t *entry) {
    free((char *)entry->names);
    free((char *)entry->title);
    free(entry->counts);
    free(entry);
}

/* The names in a pattern, each with a '\0' behind it: they take less room than the braces. */
static char *names_in(hafti_http_text_t path) {
    char *names = malloc(path.size + 1), *to = names;
    bool is_rest;
    for (hafti_http_text_t part; names != NULL && next_of_path(&path, &part);) {
        hafti_http_text_t name = name_in(part, &is_rest);
        if (name.size == 0)
            continue;
        memcpy(to, name.bytes, name.size);
        to[name.size] = '\0';
        to += name.size + 1;
    }
    return names;
}

static char *title_of(const char *method, const char *pattern) {
    char *title = malloc(strlen(method) + strlen(pattern) + 2);
    if (title != NULL)
        strcpy(stpcpy(stpcpy(title, method), " "), pattern);
    return title;
}

static int add_entry(hafti_http_node_t *node, const hafti_http_entry_t *added,
                     hafti_http_text_t path) {
    hafti_http_entry_t **last = &node->entries;
    for (; *last != NULL; last = &(*last)->next)
        if ((*last)->method == added->method)
            return -EEXIST;
    hafti_http_entry_t *entry = malloc(sizeof *entry);
    if (entry == NULL)
        return -ENOMEM;
    *entry = *added;
    const char *method = llhttp_method_name((llhttp_method_t)added->method);
    entry->names = names_in(path);
    entry->title = title_of(method, path.bytes - 1); /* with the slash */
    entry->counts = calloc(1, sizeof *entry->counts);
    if (entry->names == NULL || entry->title == NULL || entry->counts == NULL) {
        free_entry(entry);
        return -ENOMEM;
    }
    entry->pattern = entry->title + strlen(method) + 1;
    *last = entry;
    return 0;
}

/* NULL: nothing. */
static const char *mistake_of(const char *path, hafti_http_text_t pattern,
                              const hafti_http_entry_t *entry) {
    if (*path != '/')
        return "a path begins with '/'";
    if (entry->handler == NULL)
        return "the handler is NULL: write the function that answers";
    if (entry->method < 0 || entry->method == HTTP_CONNECT) /* CONNECT has no path */
        return "that is no method that requests can have (CONNECT: haft_http_server_on_connect)";
    return mistake_in_pattern(pattern);
}

int hafti_http_routes_add(hafti_http_node_t **routes, const char *path,
                          const hafti_http_entry_t *entry, const char **mistake) {
    hafti_http_text_t whole = {path + 1, *path != '\0' ? strlen(path) - 1 : 0}, rest = whole, part;
    *mistake = mistake_of(path, rest, entry);
    if (*mistake != NULL)
        return -EINVAL;
    if (*routes == NULL && (*routes = node_new("", 0)) == NULL)
        return -ENOMEM;
    hafti_http_node_t *node = *routes;
    while (next_of_path(&rest, &part))
        if ((node = child_for(node, part)) == NULL)
            return -ENOMEM;
    int code = add_entry(node, entry, whole);
    if (code == -EEXIST)
        *mistake =
            "the path has a handler for that method already (names of captures do not matter)";
    return code;
}

static void free_entries(hafti_http_entry_t *entry) {
    while (entry != NULL) {
        hafti_http_entry_t *next = entry->next;
        free_entry(entry);
        entry = next;
    }
}

void hafti_http_routes_free(hafti_http_node_t *node) {
    while (node != NULL) {
        hafti_http_node_t *sibling = node->sibling;
        hafti_http_routes_free(node->texts);
        hafti_http_routes_free(node->capture);
        hafti_http_routes_free(node->rest);
        free_entries(node->entries);
        free(node->text);
        free(node);
        node = sibling;
    }
}

void hafti_http_routes_visit(const hafti_http_node_t *node,
                             void (*visit)(const hafti_http_entry_t *entry, void *argument),
                             void *argument) {
    for (; node != NULL; node = node->sibling) {
        for (const hafti_http_entry_t *entry = node->entries; entry != NULL; entry = entry->next)
            visit(entry, argument);
        hafti_http_routes_visit(node->texts, visit, argument);
        hafti_http_routes_visit(node->capture, visit, argument);
        hafti_http_routes_visit(node->rest, visit, argument);
    }
}

/* A path that has come: its parts as they came, and decoded. */
typedef struct {
    hafti_http_text_t raw, decoded;
} part_t;
typedef struct {
    size_t count;
    part_t *parts;
    const char *end;
} path_t;

static int decode_part(hafti_http_message_t *message, hafti_http_text_t *part) {
    if (memchr(part->bytes, '%', part->size) == NULL)
        return 0;
    char *copy = hafti_http_copy(message, part->bytes, part->size);
    ssize_t size = copy != NULL ? hafti_http_decode(part->bytes, part->size, false, copy) : -ENOMEM;
    if (size < 0)
        return (int)size;
    *part = (hafti_http_text_t){copy, (size_t)size};
    return 0;
}

static size_t count_parts(hafti_http_text_t path) {
    size_t count = 0;
    for (hafti_http_text_t part; next_of_path(&path, &part);)
        count++;
    return count;
}

static int split(hafti_http_message_t *message, hafti_http_text_t text, path_t *path) {
    path->end = text.bytes + text.size;
    text = (hafti_http_text_t){text.bytes + 1, text.size - 1};
    path->count = count_parts(text);
    if (path->count > HAFTI_HTTP_PARTS)
        return -EMSGSIZE;
    path->parts = hafti_http_allocate(message, path->count * sizeof *path->parts);
    int code = path->parts != NULL ? 0 : -ENOMEM;
    for (part_t *part = path->parts; code == 0 && next_of_path(&text, &part->raw); part++) {
        part->decoded = part->raw;
        code = decode_part(message, &part->decoded);
    }
    return code;
}

/* A search, and its result. */
typedef struct {
    const path_t *path;
    int method;
    hafti_http_match_t *match;
} search_t;

static bool find(const hafti_http_node_t *node, const search_t *search, size_t at);

static const hafti_http_entry_t *entry_for(const hafti_http_entry_t *entry, int method) {
    while (entry != NULL && entry->method != method)
        entry = entry->next;
    return entry;
}

static uint64_t methods_of(const hafti_http_entry_t *entry) {
    uint64_t methods = 0;
    for (; entry != NULL; entry = entry->next)
        methods |= UINT64_C(1) << entry->method;
    return methods;
}

/* The handler for GET also answers HEAD. */
static bool found(const hafti_http_node_t *node, const search_t *search) {
    hafti_http_match_t *match = search->match;
    const hafti_http_entry_t *entry = entry_for(node->entries, search->method);
    if (entry == NULL && search->method == HTTP_HEAD)
        entry = entry_for(node->entries, HTTP_GET);
    if (entry != NULL || match->entries == NULL)
        match->entries = node->entries;
    if (entry == NULL)
        match->methods |= methods_of(node->entries);
    match->entry = entry;
    return entry != NULL;
}

static bool find_capture(const hafti_http_node_t *node, const search_t *search, size_t at) {
    hafti_http_match_t *match = search->match;
    if (node == NULL)
        return false;
    match->captures[match->count++] = search->path->parts[at].raw;
    if (find(node, search, at + 1))
        return true;
    match->count--;
    return false;
}

static bool find_rest(const hafti_http_node_t *node, const search_t *search, size_t at) {
    hafti_http_match_t *match = search->match;
    if (node == NULL)
        return false;
    const char *start = search->path->parts[at].raw.bytes;
    match->captures[match->count++] =
        (hafti_http_text_t){start, (size_t)(search->path->end - start)};
    if (found(node, search))
        return true;
    match->count--;
    return false;
}

static bool find(const hafti_http_node_t *node, const search_t *search, size_t at) {
    if (at == search->path->count)
        return found(node, search);
    hafti_http_text_t part = search->path->parts[at].decoded;
    const hafti_http_node_t *child = child_with_text(node->texts, part.bytes, part.size);
    return (child != NULL && find(child, search, at + 1)) ||
           (part.size != 0 && find_capture(node->capture, search, at)) ||
           find_rest(node->rest, search, at);
}

int hafti_http_routes_find(const hafti_http_node_t *routes, hafti_http_message_t *message,
                           hafti_http_text_t path, int method, hafti_http_match_t *match) {
    path_t parts;
    match->entries = match->entry = NULL;
    match->names = NULL;
    match->methods = 0;
    match->count = 0;
    int code = split(message, path, &parts);
    if (code == 0 && routes != NULL && find(routes, &(search_t){&parts, method, match}, 0))
        match->names = match->entry->names;
    return code;
}
