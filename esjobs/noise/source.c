/* Makes noise as a monitoring agent does: works for a part of every second on one core, sleeps for the rest.

   source PERCENT SECONDS CORE
   CORE -1: wherever it is put. Ends by itself after SECONDS. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZE = 250000 };
static long long values[SIZE];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "source PERCENT SECONDS CORE\n");
        return 2;
    }
    double work = atof(argv[1]) / 100, until = now() + atof(argv[2]);
    int core = atoi(argv[3]);
    if (core >= 0) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET(core, &cores);
        if (sched_setaffinity(0, sizeof cores, &cores) != 0) {
            perror("source: cannot be put on that core");
            return 1;
        }
    }
    volatile long long sum = 0;
    while (now() < until) {
        double start = now();
        do
            for (int i = 0; i < SIZE; ++i)
                sum += values[i];
        while (now() - start < work);
        double rest = start + 1 - now();
        if (rest > 0) {
            struct timespec pause = {(time_t)rest, (long)((rest - (time_t)rest) * 1e9)};
            nanosleep(&pause, NULL);
        }
    }
    return 0;
}
