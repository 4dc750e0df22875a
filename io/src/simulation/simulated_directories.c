/* SPDX-License-Identifier: MIT */
/*
 * The directories of a simulation. Each has a tree of names, and each name refers to two files: the
 * one it has now, and the one it had at the last sync, which a crash restores. Unsynced
 * changes are in one list, in their order; a rename changes two names at once. No directory loses
 * its name before the renames that came earlier are done: what was moved out of it would be lost
 * with it, and two directories could each be in the other.
 *
 * A name without files and changes is gone. A file lives as long as a name, a change or a
 * descriptor uses it.
 *
 *   call           | file, now   | file, synced                  | changes
 *   make, rename,  | at once     |                               | one more
 *   remove         |             |                               |
 *   sync           |             | as the changes have it        | those of the directory, and
 *                  |             |                               |   those that they need, end
 *   crash          | the synced  | as the changes that are kept  | none
 */
#include "simulation.h"

#include <dirent.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* With more the oldest is synced, as the system does it by itself after a while. */
enum { MOST_CHANGES = 1000 };

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_file_t file_t;

typedef struct name {
    hafti_io_link_t link; /* in its directory */
    file_t *directory;
    file_t *file, *synced; /* NULL: none */
    size_t changes;        /* that are not synced */
    bool lost;             /* one of them is, in a crash: so are the later ones */
    const char *text;      /* of `length`, behind this */
    size_t length;
} name_t;

/* A name and the file that it is to refer to. A change holds their directories and its files. */
typedef struct new_file {
    name_t *name;
    file_t *file;
} new_file_t;
typedef struct change {
    hafti_io_link_t link;
    new_file_t names[2];
    size_t count; /* of `names` */
    bool takes;   /* its name from a directory */
    bool chosen;  /* to be synced, or to be kept in a crash */
} change_t;

/* ---- Names ---- */

static int by_text(const void *one, const void *other) {
    const name_t *first = one, *second = other;
    if (first->length != second->length)
        return first->length < second->length ? -1 : 1;
    return memcmp(first->text, second->text, first->length);
}

static name_t *name_in(const file_t *directory, const char *text, size_t length) {
    name_t key = {.text = text, .length = length};
    name_t **found = tfind(&key, &directory->tree, by_text);
    return found != NULL ? *found : NULL;
}

/* One that is of nothing yet. NULL: no memory. */
static name_t *new_name(file_t *directory, const char *text, size_t length) {
    name_t *name = malloc(sizeof *name + length);
    if (name == NULL)
        return NULL;
    *name = (name_t){.directory = directory, .text = (char *)(name + 1), .length = length};
    memcpy(name + 1, text, length);
    if (tsearch(name, &directory->tree, by_text) == NULL) {
        free(name);
        return NULL;
    }
    hafti_io_append(&directory->names, &name->link);
    return name;
}

static void forget_if_gone(name_t *name) {
    if (name->file != NULL || name->synced != NULL || name->changes != 0)
        return;
    tdelete(name, &name->directory->tree, by_text);
    hafti_io_unlink(&name->link);
    free(name);
}

/* ---- Files ---- */

file_t *hafti_io_file_new(state_t *state, mode_t mode) {
    file_t *file = calloc(1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->mode = mode;
    file->number = ++state->last_file;
    file->read = file->changed = file->status_changed = hafti_io_simulated_date(state->simulated);
    hafti_io_ring(&file->names);
    return file;
}

static bool is_directory(const file_t *file) {
    return file != NULL && S_ISDIR(file->mode);
}

static void keep(void *name) {
    (void)name;
}
static void drop_use(file_t *file, hafti_io_link_t *unused) {
    if (file != NULL && --file->uses == 0)
        hafti_io_append(unused, &file->link);
}
/* Without a stack for directories in directories, however deep. */
void hafti_io_file_stop_using(file_t *file) {
    hafti_io_link_t unused;
    hafti_io_ring(&unused);
    drop_use(file, &unused);
    while (!hafti_io_ring_empty(&unused)) {
        file = HAFTI_IO_OWNER(unused.next, file_t, link);
        hafti_io_unlink(&file->link);
        tdestroy(file->tree, keep);
        while (!hafti_io_ring_empty(&file->names)) {
            name_t *name = HAFTI_IO_OWNER(file->names.next, name_t, link);
            hafti_io_unlink(&name->link);
            drop_use(name->file, &unused);
            drop_use(name->synced, &unused);
            free(name);
        }
        free(file->now.bytes);
        free(file->synced.bytes);
        free(file);
    }
}

static void set_file(file_t **place, file_t *file) {
    file_t *before = *place;
    if (file != NULL)
        file->uses++;
    *place = file;
    hafti_io_file_stop_using(before);
}

/* ---- Changes ---- */

static void settle(state_t *state, change_t *change, bool kept) {
    hafti_io_unlink(&change->link);
    state->change_count--;
    for (size_t i = 0; i < change->count; i++) {
        name_t *name = change->names[i].name;
        file_t *directory = name->directory;
        if (kept)
            set_file(&name->synced, change->names[i].file);
        name->changes--;
        name->lost = false;
        hafti_io_file_stop_using(change->names[i].file);
        forget_if_gone(name);
        hafti_io_file_stop_using(directory);
    }
    free(change);
}

static change_t *change_at(hafti_io_link_t *link) {
    return HAFTI_IO_OWNER(link, change_t, link);
}

/* The file has lost its name. (There are no links: it had one.) Its directory may be gone before
   it. */
static void loses_name(state_t *state, file_t *file) {
    if (file == NULL)
        return;
    file->named = false;
    if (S_ISDIR(file->mode))
        file->above = state->root;
}

static void is_named(file_t *file, const name_t *name) {
    file->named = true;
    file->name = name;
}

/* 0; -ENOMEM, and nothing has changed. */
static int change_names(state_t *state, const new_file_t *names, size_t count) {
    change_t *change = malloc(sizeof *change);
    if (change == NULL) {
        for (size_t i = 0; i < count; i++)
            forget_if_gone(names[i].name);
        return -ENOMEM;
    }
    *change = (change_t){.count = count};
    for (size_t i = 0; i < count; i++) {
        change->takes |= is_directory(names[i].name->file);
        loses_name(state, names[i].name->file);
    }
    for (size_t i = 0; i < count; i++) {
        name_t *name = names[i].name;
        change->names[i] = names[i];
        name->changes++;
        name->directory->changed = name->directory->status_changed =
            hafti_io_simulated_date(state->simulated);
        name->directory->uses++;
        name->directory->count += (size_t)(names[i].file != NULL) - (size_t)(name->file != NULL);
        if (names[i].file != NULL) {
            names[i].file->uses++;
            is_named(names[i].file, name);
            names[i].file->status_changed = hafti_io_simulated_date(state->simulated);
        }
        set_file(&name->file, names[i].file);
    }
    hafti_io_append(&state->changes, &change->link);
    if (++state->change_count > MOST_CHANGES)
        settle(state, change_at(state->changes.next), true);
    return 0;
}

/* With those of other directories that a rename, and what came before, has to do with. */
void hafti_io_directory_sync(state_t *state, file_t *directory) {
    hafti_io_link_t *head = &state->changes, *link, *next;
    bool takes = false;
    directory->syncs = true;
    for (link = head->previous; link != head; link = link->previous) {
        change_t *change = change_at(link);
        change->chosen = takes && change->count == 2;
        for (size_t i = 0; i < change->count; i++)
            change->chosen |= change->names[i].name->directory->syncs;
        for (size_t i = 0; i < change->count && change->chosen; i++)
            change->names[i].name->directory->syncs = true;
        takes |= change->takes && change->chosen;
    }
    directory->syncs = false;
    for (link = head->next; link != head; link = next) {
        change_t *change = change_at(link);
        next = link->next;
        for (size_t i = 0; i < change->count; i++)
            change->names[i].name->directory->syncs = false;
        if (change->chosen)
            settle(state, change, true);
    }
}

/* ---- A crash ---- */

static void choose_changes(state_t *state) {
    hafti_io_link_t *head = &state->changes;
    bool rename_lost = false;
    for (hafti_io_link_t *link = head->next; link != head; link = link->next) {
        change_t *change = change_at(link);
        bool lost = hafti_io_random(state->simulated, 2) == 0 || (change->takes && rename_lost);
        for (size_t i = 0; i < change->count; i++)
            lost |= change->names[i].name->lost;
        for (size_t i = 0; i < change->count; i++)
            change->names[i].name->lost = lost;
        change->chosen = !lost;
        rename_lost |= change->count == 2 && lost;
    }
    while (!hafti_io_ring_empty(head))
        settle(state, change_at(head->next), change_at(head->next)->chosen);
}

/* All names of the directory are as they were synced; what they are of comes into the list, or to
   `visit`. */
static void go_back(file_t *directory, hafti_io_link_t *directories, hafti_io_file_visit_t *visit,
                    state_t *state) {
    hafti_io_link_t *next;
    directory->count = 0;
    for (hafti_io_link_t *link = directory->names.next; link != &directory->names; link = next) {
        name_t *name = HAFTI_IO_OWNER(link, name_t, link);
        next = link->next;
        set_file(&name->file, name->synced);
        directory->count += name->file != NULL;
        if (name->file != NULL)
            is_named(name->file, name);
        if (name->file != NULL && S_ISDIR(name->file->mode)) {
            name->file->above = directory;
            hafti_io_append(directories, &name->file->link);
        } else if (name->file != NULL) {
            visit(state, name->file);
        }
        forget_if_gone(name);
    }
}

void hafti_io_directories_crash(state_t *state, hafti_io_file_visit_t *visit) {
    set_file(&state->here, state->root);
    choose_changes(state);
    hafti_io_link_t directories;
    hafti_io_ring(&directories);
    hafti_io_append(&directories, &state->root->link);
    while (!hafti_io_ring_empty(&directories)) {
        file_t *directory = HAFTI_IO_OWNER(directories.next, file_t, link);
        hafti_io_unlink(&directory->link);
        go_back(directory, &directories, visit, state);
    }
}

/* ---- Paths ---- */

static file_t *file_of(const name_t *name) {
    return name != NULL ? name->file : NULL;
}

/* From the directory that `place` is of. */
static int step(const char *text, size_t length, hafti_io_path_t *place) {
    file_t *directory = place->file;
    if (!is_directory(directory))
        return directory == NULL ? -ENOENT : -ENOTDIR;
    bool is_dots = text[0] == '.' && (length == 1 || (length == 2 && text[1] == '.'));
    if (length > NAME_MAX)
        return directory->named ? -ENAMETOOLONG : -ENOENT;
    *place = (hafti_io_path_t){.text = text, .length = length};
    if (is_dots) {
        place->file = length == 1 ? directory : directory->above;
        return 0;
    }
    place->directory = directory;
    place->name = name_in(directory, text, length);
    place->file = file_of(place->name);
    return 0;
}

int hafti_io_path_look_at(const state_t *state, file_t *from, const char *path,
                          hafti_io_path_t *place) {
    if (path == NULL)
        return -EFAULT;
    if (path[0] == '\0')
        return -ENOENT;
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    *place = (hafti_io_path_t){.file = path[0] == '/' ? state->root
                                       : from != NULL ? from
                                                      : state->here};
    for (path += strspn(path, "/"); path[0] != '\0'; path += strspn(path, "/")) {
        size_t length = strcspn(path, "/");
        int code = step(path, length, place);
        if (code != 0)
            return code;
        path += length;
        place->slash = path[0] == '/';
    }
    return 0;
}

/* A slash behind a name requires a directory: 0 or -ENOTDIR. */
static int check_slash(const hafti_io_path_t *place) {
    return place->slash && place->file != NULL && !is_directory(place->file) ? -ENOTDIR : 0;
}

int hafti_io_path_begin(file_t *from, const char *path, hafti_io_path_t *place, int fault) {
    if (hafti_io_fault_is_drawn(hafti_io_state_here()->simulated))
        return fault;
    return hafti_io_path_look_at(hafti_io_state_here(), from, path, place);
}

int hafti_io_path_find(file_t *from, const char *path, file_t **file) {
    hafti_io_path_t place;
    int code = hafti_io_path_begin(from, path, &place, -EIO);
    if (code == 0)
        code = check_slash(&place);
    if (code != 0)
        return code;
    *file = place.file;
    return place.file != NULL ? 0 : -ENOENT;
}

/* The name, as one to be changed. NULL: no memory. */
static name_t *name_at(const hafti_io_path_t *place) {
    return place->name != NULL ? place->name
                               : new_name(place->directory, place->text, place->length);
}

int hafti_io_path_make(state_t *state, hafti_io_path_t *place, mode_t mode) {
    if (!place->directory->named) /* it was removed */
        return -ENOENT;
    file_t *file = hafti_io_file_new(state, mode);
    name_t *name = file != NULL ? name_at(place) : NULL;
    if (name == NULL) {
        free(file);
        return -ENOMEM;
    }
    file->uses++; /* until the name uses it */
    file->above = place->directory;
    int code = change_names(state, &(new_file_t){name, file}, 1);
    if (code == 0)
        place->file = file;
    hafti_io_file_stop_using(file);
    return code;
}

/* ---- Where a directory is ---- */

/* Before `at`, of the text that begins at `begin`. NULL: there is no room. */
static char *put_before(char *at, const char *begin, const char *text, size_t length) {
    if ((size_t)(at - begin) < length + 1)
        return NULL;
    at -= length;
    memcpy(at, text, length);
    *--at = '/';
    return at;
}

int hafti_io_path_tell(const state_t *state, const hafti_io_path_t *place, char *into,
                       size_t size) {
    char whole[PATH_MAX], *end = whole + sizeof whole, *at = end;
    const file_t *directory = place->file;
    if (!is_directory(directory)) {
        at = put_before(at, whole, place->text, place->length);
        directory = place->directory;
    }
    for (; directory != state->root && at != NULL; directory = directory->above) {
        if (!directory->named)
            return -ENOENT;
        at = put_before(at, whole, directory->name->text, directory->name->length);
    }
    if (at == end)
        *--at = '/';
    if (at == NULL)
        return -ENAMETOOLONG;
    if ((size_t)(end - at) >= size)
        return -ERANGE;
    memcpy(into, at, (size_t)(end - at));
    into[end - at] = '\0';
    return 0;
}

/* ---- Lists ---- */

/* One more; false: no memory. */
static bool add_entry(struct dirent **list, int *count, const char *text, size_t length,
                      const file_t *file) {
    struct dirent *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return false;
    memcpy(entry->d_name, text, length);
    entry->d_ino = file->number;
    entry->d_reclen = sizeof *entry;
    entry->d_type = IFTODT(file->mode);
    list[(*count)++] = entry;
    return true;
}

int hafti_io_directory_list(const file_t *directory, struct dirent ***entries) {
    struct dirent **list = malloc((directory->count + 2) * sizeof *list);
    int count = 0;
    bool whole = list != NULL && add_entry(list, &count, ".", 1, directory) &&
                 add_entry(list, &count, "..", 2, directory->above);
    const hafti_io_link_t *names = &directory->names;
    for (const hafti_io_link_t *link = names->next; whole && link != names; link = link->next) {
        const name_t *name = HAFTI_IO_OWNER(link, name_t, link);
        if (name->file != NULL)
            whole = add_entry(list, &count, name->text, name->length, name->file);
    }
    if (whole) {
        *entries = list;
        return count;
    }
    while (count != 0)
        free(list[--count]);
    free(list);
    return -ENOMEM;
}

/* ---- Changes of names ---- */

int hafti_io_path_mkdir(file_t *from, const char *path, mode_t mode) {
    hafti_io_path_t place;
    int code = hafti_io_path_begin(from, path, &place, -EIO);
    if (code != 0)
        return code;
    return place.file == NULL
               ? hafti_io_path_make(hafti_io_state_here(), &place, S_IFDIR | (mode & 07777))
               : -EEXIST;
}

int hafti_io_path_remove(file_t *from, const char *path, unsigned kinds) {
    hafti_io_path_t place;
    int code = hafti_io_path_begin(from, path, &place, -EIO);
    if (code != 0)
        return code;
    bool removes_directories = (kinds & HAFTI_IO_REMOVES_DIRECTORIES) != 0;
    if (place.directory == NULL) {
        if (!removes_directories)
            return -EISDIR;
        return place.text == NULL ? -EBUSY : place.length == 1 ? -EINVAL : -ENOTEMPTY;
    }
    if (place.file == NULL)
        return -ENOENT;
    bool is_one = is_directory(place.file);
    if (!is_one && (place.slash || (kinds & HAFTI_IO_REMOVES_FILES) == 0))
        return -ENOTDIR;
    if (is_one && !removes_directories)
        return -EISDIR;
    if (place.file->count != 0)
        return -ENOTEMPTY;
    return change_names(hafti_io_state_here(), &(new_file_t){place.name, NULL}, 1);
}

/* The system's error for the two names, or 0. */
static int check_rename(const hafti_io_path_t *from, const hafti_io_path_t *to, unsigned flags) {
    bool keeps = (flags & RENAME_NOREPLACE) != 0;
    if (from->directory == NULL || to->directory == NULL) /* "/", "." and ".." */
        return keeps && from->directory != NULL ? -EEXIST : -EBUSY;
    if (from->file == NULL)
        return -ENOENT;
    if (to->file != NULL && keeps)
        return -EEXIST;
    bool is_one = is_directory(from->file);
    if (!is_one && (from->slash || to->slash))
        return -ENOTDIR;
    for (const file_t *at = to->directory; is_one && at != at->above; at = at->above)
        if (at == from->file)
            return -EINVAL;
    if (to->file == from->file)
        return 0;
    for (const file_t *at = from->directory; at != at->above; at = at->above)
        if (at == to->file)
            return -ENOTEMPTY;
    if (is_one != is_directory(to->file) && to->file != NULL)
        return is_one ? -ENOTDIR : -EISDIR;
    if (to->file != NULL && to->file->count != 0)
        return -ENOTEMPTY;
    return to->directory->named ? 0 : -ENOENT;
}

int hafti_io_path_rename(const hafti_io_path_t *old, const hafti_io_path_t *new, unsigned flags) {
    int code = check_rename(old, new, flags);
    if (code != 0 || old->file == new->file)
        return code;
    name_t *name = name_at(new);
    if (name == NULL)
        return -ENOMEM;
    file_t *file = old->file, *directory = new->directory;
    code = change_names(hafti_io_state_here(), (new_file_t[]){{name, file}, {old->name, NULL}}, 2);
    if (code == 0)
        file->above = directory;
    return code;
}

/* ---- What a file is ---- */

void hafti_io_file_status(const file_t *file, struct stat *status) {
    *status = (struct stat){.st_ino = file->number,
                            .st_rdev = S_ISCHR(file->mode) ? makedev(1, 9) : 0,
                            .st_mode = file->mode,
                            .st_nlink = file->named,
                            .st_uid = geteuid(),
                            .st_gid = getegid(),
                            .st_size = (off_t)file->now.size,
                            .st_blksize = 4096,
                            .st_blocks = (blkcnt_t)((file->now.size + 511) / 512),
                            .st_atim = file->read,
                            .st_mtim = file->changed,
                            .st_ctim = file->status_changed};
}

/* ---- For files.c ---- */

static int by_name(const void *one, const void *other) {
    const struct dirent *const *first = one, *const *second = other;
    return strcoll((*first)->d_name, (*second)->d_name);
}

int hafti_io_calls_scandir(const char *path, struct dirent ***entries) {
    file_t *directory;
    int code = hafti_io_path_find(NULL, path, &directory);
    if (code == 0 && !is_directory(directory))
        code = -ENOTDIR;
    if (code != 0)
        return code;
    int count = hafti_io_directory_list(directory, entries);
    if (count > 0)
        qsort(*entries, (size_t)count, sizeof **entries, by_name);
    return count;
}

int hafti_io_calls_remove(const char *path) {
    return hafti_io_path_remove(NULL, path, HAFTI_IO_REMOVES_FILES | HAFTI_IO_REMOVES_DIRECTORIES);
}

/* ---- The run ---- */

int hafti_io_simulated_files_start(state_t *state) {
    state->root = hafti_io_file_new(state, S_IFDIR | 0755);
    if (state->root == NULL)
        return -ENOMEM;
    state->root->uses = 1;
    state->root->named = true;
    state->root->above = state->root;
    set_file(&state->here, state->root);
    return 0;
}

void hafti_io_simulated_files_stop(state_t *state) {
    /* Settles all changes as if they were synced: current and former names together may form a
       circle. */
    while (!hafti_io_ring_empty(&state->changes))
        settle(state, change_at(state->changes.next), true);
    hafti_io_file_stop_using(state->here);
    hafti_io_file_stop_using(state->root);
}

void hafti_io_go_to(state_t *state, file_t *directory) {
    set_file(&state->here, directory);
}
