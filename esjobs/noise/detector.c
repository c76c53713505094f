/* Times a number of collective operations of MPI: what noise on any core of any node makes slower.

   detector COLLECTIVE BYTES COUNT SECONDS
   COUNT 0: so many that they take about SECONDS. Prints one line of JSON: the time of the slowest rank, the
   longest time that a rank waited for a core, and the most involuntary switches of a rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static char *from, *to;
static int bytes;
static enum { BARRIER, ALLREDUCE, ALLTOALL } kind;

static double timed(long count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long i = 0; i < count; ++i) {
        if (kind == BARRIER)
            MPI_Barrier(MPI_COMM_WORLD);
        else if (kind == ALLREDUCE)
            MPI_Allreduce(from, to, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
        else
            MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    double mine = MPI_Wtime() - start, slowest;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* Seconds that this process waited for a core while it could run; negative where the kernel does not say. */
static double waited(void)
{
    unsigned long long ran, delay;
    FILE *file = fopen("/proc/self/schedstat", "r");
    int known = file != NULL && fscanf(file, "%llu %llu", &ran, &delay) == 2;
    if (file)
        fclose(file);
    return known ? delay * 1e-9 : -1.0;
}

static long switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5) {
        if (rank == 0)
            fprintf(stderr, "detector COLLECTIVE BYTES COUNT SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    kind = !strcmp(argv[1], "barrier") ? BARRIER : !strcmp(argv[1], "allreduce") ? ALLREDUCE : ALLTOALL;
    bytes = atoi(argv[2]);
    long count = atol(argv[3]);
    double seconds = atof(argv[4]);
    from = calloc((size_t)bytes + 1, ranks);
    to = calloc((size_t)bytes + 1, ranks);
    if (from == NULL || to == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    timed(100);
    if (count == 0) {
        double took = 0;
        for (count = 100; count < 1L << 40; count *= 2)
            if ((took = timed(count)) > 0.1 || took > seconds)
                break;
        /* a rank that lost its core for a moment makes one measurement useless: ask again with more */
        for (int attempt = 0; attempt < 5 && (took < 0.7 * seconds || took > 1.4 * seconds); ++attempt) {
            count = (long)(count * seconds / took) + 1;
            took = timed(count);
        }
    }
    double delay = waited();
    long turns = switches();
    double slowest = timed(count);
    double after = waited();
    delay = delay < 0 || after < 0 ? -1.0 : after - delay;
    turns = switches() - turns;
    double longest;
    long most;
    MPI_Reduce(&delay, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&turns, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"seconds\": %.9f, \"run_delay_s\": %.9f, \"involuntary_switches\": %ld, \"count\": %ld, "
               "\"ranks\": %d}\n", slowest, longest, most, count, ranks);
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
