/* SPDX-License-Identifier: MIT */
/* The floor of languages: what haft/language.h offers for implementing a language on the
   library. */
#ifndef HAFT_LANGUAGES_H
#define HAFT_LANGUAGES_H

#include "fiber.h"

/* Tells the language of the fibers that the thread leaves behind. */
void haft_language_thread_exits(hafti_thread_t *thread);

#endif
