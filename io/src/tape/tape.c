/* SPDX-License-Identifier: MIT */
/*
 * The file of a tape, version 2. Numbers of several bytes are LEB128 (seven bits a byte, the lowest
 * first), and those that may be negative are folded: 0, -1, 1, -2 are 0, 1, 2, 3.
 *
 *   head      "HAFTTAPE", then four texts, each of which ends with '\0': the version of the format,
 *             the architecture, the build-id of the program, the program's path
 *   request   of a file of a request that was kept: REQUEST and ANSWER, as answers, whose bytes
 *             are libhaft-http's; COMMAND, the arguments of the process, each with '\0'
 *   entries   RUN    | 1 | number of the task that goes on
 *             TIME   | 2 | the time of the loop minus the time before, folded
 *             ENDED  | 4 | 0: the run has ended
 *             BEGIN  | 3 | as an answer: a run begins; the time of the loop; the back end's name
 *             answer | kind | descriptor, folded | result, folded | n | n bytes
 *   the end   a byte 0, or the end of the file, also within an entry
 *
 * Answers follow the RUN of the task that got them. Tasks are numbered as they are spawned, from 0,
 * which is the first task of the run. recorder.c and taped_system.c describe the bytes of an
 * answer.
 *
 * The file is mapped, a part at a time, so that nothing is lost when the process is killed. Each
 * part has its blocks from the beginning: where the file system is full the recording ends with a
 * message, and the run goes on. The calls are the system's own, because libhaft-posix has others.
 */
#include "tape.h"
#include "../system_call.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FORMAT "2"
#if defined(__x86_64__)
#    define ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#    define ARCHITECTURE "aarch64"
#else
#    define ARCHITECTURE "another"
#endif

static const char magic[8] = {'H', 'A', 'F', 'T', 'T', 'A', 'P', 'E'};
enum { PAGE = 4096, PART = 1 << 20, MOST_OF_ERRORS = 4095, BUILD_ID = 64 };

static const char *const names_of_others[] = {
#define NAME_ITSELF(kind, name) name,
    HAFTI_IO_TAPED_KINDS(NAME_ITSELF)};

const char *hafti_io_tape_name(unsigned kind) {
    enum { OTHERS = sizeof names_of_others / sizeof names_of_others[0] };
    if (kind > HAFTI_IO_TAPED_OTHERS && kind - HAFTI_IO_TAPED_OTHERS - 1 < OTHERS)
        return names_of_others[kind - HAFTI_IO_TAPED_OTHERS - 1];
    if (kind >= HAFTI_IO_TAPED_OPERATION && kind <= HAFTI_IO_TAPED_OPERATION + HAFTI_IO_POLL)
        return hafti_io_kind_name((enum hafti_io_kind)(kind - HAFTI_IO_TAPED_OPERATION));
    switch (kind) {
    case HAFTI_IO_TAPED_END:
        return "the end of the record";
    case HAFTI_IO_TAPED_RUN:
        return "another task's turn";
    case HAFTI_IO_TAPED_TIME:
        return "a wait";
    case HAFTI_IO_TAPED_BEGIN:
        return "the beginning of a run";
    case HAFTI_IO_TAPED_ENDED:
        return "the end of the run";
    default:
        return "something unknown";
    }
}

/* ---- The head ---- */

static int note_build_id(struct dl_phdr_info *info, size_t size, void *text) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr);
        const char *end = at + header->p_memsz;
        while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
            const char *name = at + sizeof *note, *id = name + (note->n_namesz + 3) / 4 * 4;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                memcmp(name, "GNU", 4) == 0 && note->n_descsz < BUILD_ID / 2)
                for (unsigned j = 0; j < note->n_descsz; j++)
                    snprintf((char *)text + 2 * j, 3, "%02x", (unsigned char)id[j]);
            at = id + (note->n_descsz + 3) / 4 * 4;
        }
    }
    return 1; /* the first is the program */
}

static void find_build_id(char text[BUILD_ID]) {
    text[0] = '\0';
    dl_iterate_phdr(note_build_id, text);
}

static void put_text(hafti_io_tape_t *tape, const char *text) {
    hafti_io_keep_bytes(tape, text, strlen(text) + 1);
}

static void put_head(hafti_io_tape_t *tape) {
    char build_id[BUILD_ID], program[PAGE];
    find_build_id(build_id);
    long size = hafti_io_system_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe",
                                     (long)program, sizeof program - 1, 0, 0);
    program[size > 0 ? size : 0] = '\0';
    hafti_io_keep_bytes(tape, magic, sizeof magic);
    put_text(tape, FORMAT);
    put_text(tape, ARCHITECTURE);
    put_text(tape, build_id);
    put_text(tape, program);
}

/* NULL: the file ends before. */
static const char *take_text(hafti_io_tape_t *tape) {
    const char *text = (const char *)tape->at;
    unsigned char *end = memchr(tape->at, '\0', (size_t)(tape->end - tape->at));
    if (end == NULL)
        return NULL;
    tape->at = end + 1;
    return text;
}

__attribute__((format(printf, 2, 3))) static int refuse(const hafti_io_tape_t *tape,
                                                        const char *format, ...) {
    char why[PAGE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "haft-io: %s cannot be replayed: %s.\n", tape->path, why);
    return -EINVAL;
}

static int check_head(hafti_io_tape_t *tape) {
    if (tape->end - tape->at < (ptrdiff_t)sizeof magic ||
        memcmp(tape->at, magic, sizeof magic) != 0)
        return refuse(tape, "it is no record of a run, as HAFT_IO_RECORD makes it");
    tape->at += sizeof magic;
    const char *format = take_text(tape);
    const char *architecture = format != NULL ? take_text(tape) : NULL;
    const char *build_id = architecture != NULL ? take_text(tape) : NULL;
    const char *program = build_id != NULL ? take_text(tape) : NULL;
    if (format != NULL && strcmp(format, FORMAT) != 0)
        return refuse(tape,
                      "it has version %.16s of the format, and this libhaft-io reads version %s; "
                      "replay it with the libhaft-io that has recorded it",
                      format, FORMAT);
    if (architecture != NULL && strcmp(architecture, ARCHITECTURE) != 0)
        return refuse(tape, "it was recorded on %.16s, and this program is for %s", architecture,
                      ARCHITECTURE);
    if (program == NULL)
        return refuse(tape, "it ends before the first run begins");
    char own[BUILD_ID];
    find_build_id(own);
    tape->rebuilt = strcmp(own, build_id) != 0;
    return 0;
}

/* ---- Its parts ---- */

static void lose(hafti_io_tape_t *tape, long code) {
    dprintf(STDERR_FILENO,
            "haft-io: the record %s ends here, and the run goes on without: %s. Record to a file "
            "system with more room.\n",
            tape->path, strerror((int)-code));
    tape->lost = true;
}

static void unmap(hafti_io_tape_t *tape) {
    if (tape->part != NULL)
        hafti_io_system_call(SYS_munmap, (long)tape->part, (long)tape->part_size, 0, 0, 0, 0);
    tape->part = NULL;
}

/* Maps memory that is written again and again, once nothing more is kept. */
static void map_nothing(hafti_io_tape_t *tape) {
    static unsigned char nowhere[PAGE]; /* of all tapes, since nobody reads it */
    tape->at = nowhere;
    tape->end = nowhere + sizeof nowhere;
}

/* Maps the file from this place on. */
static long map_at(hafti_io_tape_t *tape, size_t place) {
    unmap(tape);
    tape->part_at = place / PAGE * PAGE;
    tape->part_size = PART;
    long code = hafti_io_system_call(SYS_fallocate, tape->file, 0, (long)tape->part_at, PART, 0, 0);
    if (code == -EOPNOTSUPP || hafti_io_is_missing((int)code))
        code = hafti_io_system_call(SYS_ftruncate, tape->file, (long)(tape->part_at + PART), 0, 0,
                                    0, 0);
    if (code < 0)
        return code;
    long part = hafti_io_system_call(SYS_mmap, 0, PART, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_POPULATE, tape->file, (long)tape->part_at);
    if (part < 0 && part >= -MOST_OF_ERRORS)
        return part;
    tape->part = (unsigned char *)part;
    tape->at = tape->part + (place - tape->part_at);
    tape->end = tape->part + PART;
    return 0;
}

static size_t place_of(const hafti_io_tape_t *tape) {
    return tape->part_at + (size_t)(tape->at - tape->part);
}

/* Doubles the memory; for a request only up to its limit. */
static bool grow(hafti_io_tape_t *tape) {
    size_t used = tape->part != NULL ? (size_t)(tape->at - tape->part) : 0,
           size = 2 * tape->part_size + PAGE;
    if (tape->run != NULL && (tape->lost || used >= tape->most))
        return false;
    unsigned char *larger = realloc(tape->part, size);
    if (larger == NULL)
        return false;
    tape->part = larger;
    tape->part_size = size;
    tape->at = larger + used;
    tape->end = larger + size;
    return true;
}

void hafti_io_tape_turn(hafti_io_tape_t *tape) {
    if (tape->grows && grow(tape))
        return;
    if (tape->keeps) { /* an operation has outlived the request of its task */
        map_nothing(tape);
        return;
    }
    if (tape->grows && tape->run == NULL)
        hafti_io_misuse("There is no memory for what blocking work has asked the system for.");
    if (tape->grows) { /* the record is of no use, and the request may go on for long */
        free(tape->part);
        tape->part = NULL;
        tape->part_size = 0;
        tape->lost = true;
    }
    long code = tape->lost ? 0 : map_at(tape, place_of(tape));
    if (code < 0)
        lose(tape, code);
    if (tape->lost)
        map_nothing(tape);
}

void hafti_io_keep_over_parts(hafti_io_tape_t *tape, const void *bytes, size_t size) {
    const char *from = bytes;
    while (size != 0) {
        if (tape->at == tape->end)
            hafti_io_tape_turn(tape);
        size_t room = (size_t)(tape->end - tape->at), now = size < room ? size : room;
        memcpy(tape->at, from, now);
        tape->at += now;
        from += now;
        size -= now;
    }
}

static long open_file(const char *path, int flags) {
    return hafti_io_system_call(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0600, 0, 0);
}

enum { FIRST_MOVED = 1000 };
/* A program that is recorded has the same numbers for its own descriptors as one that is not. */
static int moved_up(int file) {
    if (file < 0)
        return -1;
    long moved = hafti_io_system_call(SYS_fcntl, file, F_DUPFD_CLOEXEC, FIRST_MOVED, 0, 0, 0);
    if (moved < 0)
        return file;
    hafti_io_system_call(SYS_close, file, 0, 0, 0, 0, 0);
    return (int)moved;
}

int hafti_io_tape_make(hafti_io_tape_t *tape, const char *path, bool is_new) {
    *tape = (hafti_io_tape_t){.file = -1, .path = strdup(path)};
    if (tape->path == NULL)
        return -ENOMEM;
    long file = open_file(path, O_RDWR | O_CREAT | (is_new ? O_EXCL : O_TRUNC));
    if (file < 0)
        return (int)file;
    tape->file = moved_up((int)file);
    long code = map_at(tape, 0);
    if (code < 0)
        return (int)code;
    put_head(tape);
    return 0;
}

int hafti_io_tape_load(hafti_io_tape_t *tape, const char *path) {
    *tape = (hafti_io_tape_t){.replays = true, .file = -1, .path = strdup(path)};
    if (tape->path == NULL)
        return -ENOMEM;
    long file = open_file(path, O_RDONLY);
    if (file < 0)
        return refuse(tape, "%s", strerror((int)-file));
    long size = hafti_io_system_call(SYS_lseek, file, 0, SEEK_END, 0, 0, 0);
    long part = size > 0 ? hafti_io_system_call(SYS_mmap, 0, size, PROT_READ, MAP_PRIVATE, file, 0)
                         : -EINVAL;
    hafti_io_system_call(SYS_close, file, 0, 0, 0, 0, 0);
    if (part < 0 && part >= -MOST_OF_ERRORS)
        return refuse(tape, "%s", size == 0 ? "it is empty" : strerror((int)-part));
    tape->part = (unsigned char *)part;
    tape->part_size = (size_t)size;
    tape->at = tape->part;
    tape->end = tape->part + size;
    return check_head(tape);
}

void hafti_io_tape_rest(hafti_io_tape_t *tape) {
    if (tape->replays || tape->lost || tape->part == NULL)
        return;
    hafti_io_system_call(SYS_ftruncate, tape->file, (long)place_of(tape), 0, 0, 0, 0);
    tape->end = tape->at; /* The next entry maps the file again. */
}

void hafti_io_tape_take_request(hafti_io_tape_t *tape) {
    struct iovec *const into[] = {&tape->request, &tape->answer, &tape->command};
    for (unsigned i = 0; i < sizeof into / sizeof *into; i++) {
        const hafti_io_entry_t *entry = hafti_io_tape_look(tape);
        if (entry->kind != HAFTI_IO_TAPED_REQUEST + i)
            return;
        *into[i] = (struct iovec){(void *)(uintptr_t)entry->bytes, entry->size};
        hafti_io_tape_take(tape);
    }
}

void hafti_io_tape_forget(hafti_io_tape_t *tape) {
    if (tape->replays || tape->keeps || tape->run != NULL)
        return;
    tape->lost = true;
    tape->part = NULL; /* the parent's, too */
    tape->at = tape->end = NULL;
}

void hafti_io_tape_free(hafti_io_tape_t *tape) {
    hafti_io_tape_rest(tape);
    unmap(tape);
    if (tape->file >= 0)
        hafti_io_system_call(SYS_close, tape->file, 0, 0, 0, 0, 0);
    for (uint32_t i = 0; i < tape->requests_count; i++) {
        free(tape->requests[i]->part);
        free(tape->requests[i]);
    }
    free(tape->requests);
    free(tape->numbers);
    free(tape->tasks);
    free(tape->path);
    *tape = (hafti_io_tape_t){.file = -1};
}

/* ---- Reading ---- */

static bool take_number(const unsigned char **at, const unsigned char *end, uint64_t *number) {
    *number = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        unsigned char byte = *(*at)++;
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

static bool take_folded(const unsigned char **at, const unsigned char *end, int64_t *number) {
    uint64_t folded;
    if (!take_number(at, end, &folded))
        return false;
    *number = (int64_t)(folded >> 1) ^ -(int64_t)(folded & 1);
    return true;
}

/* False: the entry is not whole. */
static bool read_entry(const hafti_io_tape_t *tape, hafti_io_entry_t *entry) {
    const unsigned char *at = tape->at, *end = tape->end;
    if (at == end || *at == HAFTI_IO_TAPED_END)
        return false;
    *entry = (hafti_io_entry_t){.kind = *at++, .descriptor = -1};
    int64_t descriptor;
    uint64_t number, size;
    switch (entry->kind) {
    case HAFTI_IO_TAPED_RUN:
    case HAFTI_IO_TAPED_ENDED:
        if (!take_number(&at, end, &number))
            return false;
        entry->result = (int64_t)number;
        break;
    case HAFTI_IO_TAPED_TIME:
        if (!take_folded(&at, end, &entry->result))
            return false;
        break;
    default:
        if (!take_folded(&at, end, &descriptor) || !take_folded(&at, end, &entry->result) ||
            !take_number(&at, end, &size) || size > (size_t)(end - at))
            return false;
        entry->descriptor = (int)descriptor;
        entry->bytes = at;
        entry->size = size;
        at += size;
        break;
    }
    entry->after = at;
    return true;
}

const hafti_io_entry_t *hafti_io_tape_look(hafti_io_tape_t *tape) {
    if (tape->next.after == NULL && !read_entry(tape, &tape->next))
        tape->next = (hafti_io_entry_t){.kind = HAFTI_IO_TAPED_END, .after = tape->at};
    return &tape->next;
}

const hafti_io_entry_t *hafti_io_tape_answer(hafti_io_tape_t *tape, unsigned kind, int descriptor) {
    const hafti_io_entry_t *next = hafti_io_tape_look(tape);
    /* A task of a request has waited here for what is not on the tape (haft_io_kept_pause). */
    if ((next->kind == HAFTI_IO_TAPED_RUN || next->kind == HAFTI_IO_TAPED_TIME) &&
        tape->request.iov_base != NULL && tape->worker != NULL)
        return tape->awaits(tape->worker->running, kind, descriptor);
    if (HAFTI_IO_UNLIKELY(next->kind != kind || next->descriptor != descriptor))
        tape->differs(tape, kind, descriptor);
    hafti_io_tape_take(tape);
    return next;
}

/* ---- Descriptors ---- */

void hafti_io_tape_occupy(hafti_io_tape_t *tape, int descriptor) {
    if (descriptor < 0)
        return;
    if (tape->file < 0)
        tape->file = moved_up((int)open_file("/dev/null", O_RDWR));
    if (tape->file >= 0 && hafti_io_system_call(SYS_fcntl, descriptor, F_GETFD, 0, 0, 0, 0) < 0)
        hafti_io_system_call(SYS_dup3, tape->file, descriptor, O_CLOEXEC, 0, 0, 0);
}

void hafti_io_tape_vacate(hafti_io_tape_t *tape, int descriptor) {
    if (descriptor != tape->file)
        hafti_io_system_call(SYS_close, descriptor, 0, 0, 0, 0, 0);
}

void hafti_io_tape_keep_descriptors(hafti_io_tape_t *tape) {
    unsigned char used[FIRST_MOVED / CHAR_BIT] = {0};
    for (int i = 0; i < FIRST_MOVED; i++)
        if (hafti_io_system_call(SYS_fcntl, i, F_GETFD, 0, 0, 0, 0) >= 0)
            used[i / CHAR_BIT] |= (unsigned char)(1 << i % CHAR_BIT);
    hafti_io_keep(tape, HAFTI_IO_TAPED_DESCRIPTORS, -1, 0, used, sizeof used);
}

void hafti_io_tape_occupy_all(hafti_io_tape_t *tape) {
    unsigned char used[FIRST_MOVED / CHAR_BIT] = {0};
    const hafti_io_entry_t *entry = hafti_io_tape_answer(tape, HAFTI_IO_TAPED_DESCRIPTORS, -1);
    hafti_io_copy_answer(entry, used, sizeof used);
    for (int i = 0; i < FIRST_MOVED; i++)
        if ((used[i / CHAR_BIT] >> i % CHAR_BIT & 1) != 0)
            hafti_io_tape_occupy(tape, i);
}

/* ---- Numbers and bytes ---- */

int64_t hafti_io_tape_number(hafti_io_tape_t *tape, unsigned kind, int64_t value) {
    if (tape->replays)
        return hafti_io_tape_answer(tape, kind, -1)->result;
    hafti_io_keep(tape, kind, -1, value, NULL, 0);
    return value;
}

void hafti_io_tape_bytes(hafti_io_tape_t *tape, unsigned kind, void *bytes, size_t size) {
    if (!tape->replays)
        hafti_io_keep(tape, kind, -1, 0, bytes, size);
    else
        hafti_io_copy_answer(hafti_io_tape_answer(tape, kind, -1), bytes, size);
}

__thread __attribute__((tls_model("initial-exec"))) hafti_io_tape_t *hafti_io_work_tape;

/* ---- The order of tasks ---- */

/* The place of the address, or the first that is empty. */
static hafti_io_number_of_t *find(const hafti_io_tape_t *tape, const haft_io_task_t *task) {
    uint64_t spread = (uintptr_t)task / sizeof *task * UINT64_C(0x9e3779b97f4a7c15);
    size_t last = tape->numbers_size - 1, at = (size_t)(spread >> 20) & last;
    while (tape->numbers[at].task != NULL && tape->numbers[at].task != task)
        at = (at + 1) & last;
    return &tape->numbers[at];
}

uint32_t hafti_io_tape_number_of(const hafti_io_tape_t *tape, const haft_io_task_t *task) {
    return tape->numbers_size != 0 ? find(tape, task)->number : 0;
}

static HAFTI_IO_COLD bool grow_numbers(hafti_io_tape_t *tape) {
    hafti_io_tape_t larger = *tape;
    larger.numbers_size = tape->numbers_size != 0 ? 2 * tape->numbers_size : 64;
    larger.numbers = calloc(larger.numbers_size, sizeof *larger.numbers);
    if (larger.numbers == NULL)
        return false;
    for (size_t i = 0; i < tape->numbers_size; i++)
        if (tape->numbers[i].task != NULL)
            *find(&larger, tape->numbers[i].task) = tape->numbers[i];
    free(tape->numbers);
    tape->numbers = larger.numbers;
    tape->numbers_size = larger.numbers_size;
    return true;
}

static HAFTI_IO_COLD bool grow_tasks(hafti_io_tape_t *tape) {
    size_t room = tape->tasks_room != 0 ? 2 * tape->tasks_room : 64;
    hafti_io_taped_task_t *larger = realloc(tape->tasks, room * sizeof *larger);
    if (larger == NULL)
        return false;
    tape->tasks = larger;
    tape->tasks_room = room;
    return true;
}

/* False: there is no memory. */
static bool put_number(hafti_io_tape_t *tape, const haft_io_task_t *task, uint32_t number,
                       const hafti_io_tape_t *request) {
    if (tape->numbers_used >= tape->numbers_size / 2 && !grow_numbers(tape))
        return false;
    hafti_io_number_of_t *place = find(tape, task);
    tape->numbers_used += place->task == NULL;
    *place = (hafti_io_number_of_t){task, number, request != NULL ? request->place + 1 : 0,
                                    request != NULL ? request->use : 0};
    return true;
}

bool hafti_io_tape_enter(hafti_io_tape_t *request, const haft_io_task_t *task, uint32_t number) {
    return put_number(request->run, task, number, request);
}

/* A task that is spawned for what is off the record (haft_io_kept_pause) is of no request: a replay
   does not spawn it. The address may be that of an earlier task. */
static HAFTI_IO_COLD void spawned_by_request(hafti_io_tape_t *tape, const haft_io_task_t *task) {
    const hafti_io_tape_t *run = tape->run != NULL ? tape->run : tape;
    if (tape->run != NULL && !tape->worker->running->taped) {
        if (!hafti_io_tape_enter(tape, task, tape->spawned++))
            tape->lost = true;
    } else if (run->numbers_size != 0) {
        find(run, task)->request = 0;
    }
}

void hafti_io_tape_spawned(hafti_io_tape_t *tape, haft_io_task_t *task) {
    if (HAFTI_IO_UNLIKELY(tape->keeps || tape->run != NULL)) {
        spawned_by_request(tape, task);
        return;
    }
    if (!put_number(tape, task, tape->spawned, NULL) ||
        (tape->replays && tape->spawned == tape->tasks_room && !grow_tasks(tape)))
        hafti_io_misuse("There is no memory for the numbers of the tasks of a run that is recorded "
                        "or replayed.");
    if (tape->replays)
        tape->tasks[tape->spawned] = (hafti_io_taped_task_t){.task = task};
    tape->spawned++;
}

/* NULL: it is of none, or of one that has ended. */
static hafti_io_tape_t *request_of(const hafti_io_tape_t *run, const hafti_io_number_of_t *place) {
    if (place == NULL || place->request == 0)
        return NULL;
    hafti_io_tape_t *request = run->requests[place->request - 1];
    return request->use == place->use ? request : NULL;
}

/* Makes the worker's tape that of the task's request; NULL: it is of none. */
static hafti_io_tape_t *turn_to_request(hafti_io_worker_t *worker, const haft_io_task_t *task,
                                        uint32_t *number) {
    hafti_io_tape_t *run = worker->tape->run != NULL ? worker->tape->run : worker->tape;
    const hafti_io_number_of_t *place = run->numbers_size != 0 ? find(run, task) : NULL;
    hafti_io_tape_t *request = request_of(run, place);
    worker->tape = request != NULL ? request : run;
    *number = request != NULL ? place->number : 0;
    return request;
}

void hafti_io_tape_goes_on(hafti_io_worker_t *worker, const haft_io_task_t *task) {
    hafti_io_tape_t *tape = worker->tape;
    uint32_t number;
    if (HAFTI_IO_UNLIKELY(tape->keeps || tape->run != NULL)) {
        tape = turn_to_request(worker, task, &number);
        if (tape == NULL)
            return;
    } else {
        number = hafti_io_tape_number_of(tape, task);
    }
    tape->running = number;
    if (tape->replays) {
        const hafti_io_entry_t *next = hafti_io_tape_look(tape);
        if (next->kind != HAFTI_IO_TAPED_RUN || next->result != number)
            tape->differs(tape, HAFTI_IO_TAPED_RUN, -1);
        hafti_io_tape_take(tape);
        return;
    }
    if (worker->clock != tape->time) {
        hafti_io_keep_order(tape, HAFTI_IO_TAPED_TIME, hafti_io_folded(worker->clock - tape->time));
        tape->time = worker->clock;
    }
    hafti_io_keep_order(tape, HAFTI_IO_TAPED_RUN, number);
}
