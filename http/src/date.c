/* SPDX-License-Identifier: MIT */
/* Dates as HTTP writes them (RFC 9110, section 5.6.7), whatever the locale is. */
#include "text.h"

#include <haft/io.h>
#include <stdio.h>
#include <time.h>

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

void hafti_http_put_date(time_t time, char into[HAFTI_HTTP_DATE + 1]) {
    char date[80]; /* gcc does not know how small the numbers are */
    struct tm parts;
    gmtime_r(&time, &parts);
    snprintf(date, sizeof date, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * parts.tm_wday,
             parts.tm_mday, months + 3 * parts.tm_mon, parts.tm_year + 1900, parts.tm_hour,
             parts.tm_min, parts.tm_sec);
    memcpy(into, date, HAFTI_HTTP_DATE);
    into[HAFTI_HTTP_DATE] = '\0';
}

/* (The coarse clock takes a third of the time.) */
time_t hafti_http_now(void) {
    if (haft_io_seed() != 0)
        return haft_io_date().tv_sec;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec;
}

static int month_of(const char *name) {
    for (int month = 0; month < 12; month++)
        if (strncmp(months + 3 * month, name, 3) == 0)
            return month;
    return -1;
}

/* A year of two digits that seems to be more than 50 years ahead is one of the last century. */
static int whole_year(int year) {
    time_t now = hafti_http_now();
    struct tm parts;
    gmtime_r(&now, &parts);
    int guess = year + (parts.tm_year + 1900) / 100 * 100;
    return guess > parts.tm_year + 1900 + 50 ? guess - 100 : guess;
}

bool hafti_http_parse_date(const char *text, time_t *time) {
    char month[4] = "";
    struct tm parts = {0};
    int end = 0, year = 0;
    bool is_short = false;
    sscanf(text, "%*3[A-Za-z], %2d %3s %4d %2d:%2d:%2d GMT%n", &parts.tm_mday, month, &year,
           &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &end);
    if (end == 0) { /* RFC 850 */
        sscanf(text, "%*9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n", &parts.tm_mday, month,
               &year, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &end);
        is_short = true;
    }
    if (end == 0) { /* asctime(3) */
        sscanf(text, "%*3[A-Za-z] %3s %2d %2d:%2d:%2d %4d%n", month, &parts.tm_mday, &parts.tm_hour,
               &parts.tm_min, &parts.tm_sec, &year, &end);
        is_short = false;
    }
    parts.tm_mon = month_of(month);
    if (end == 0 || text[end] != '\0' || parts.tm_mon < 0 || parts.tm_mday < 1 || year < 0)
        return false;
    parts.tm_year = (is_short ? whole_year(year) : year) - 1900;
    *time = timegm(&parts);
    return true;
}
