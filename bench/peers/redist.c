// SPDX-License-Identifier: Apache-2.0
//go:build ignore

// The redistribution of gompibench redist for any MPI in C: a static job of as many ranks
// as there are before or after, of which the first FROM are sources and the first TO
// targets, by Alltoallv and by windows as the study of MaM with RMA has them (Algorithms 1
// to 3). Arguments are those of gompibench redist. Each method is measured cold, with a
// receive buffer that is new in each round, and warm, with one that is there; making and
// freeing windows is inside. Go's tools skip this file (build tag).

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_ROUNDS = 1000 };

static struct {
	long from, to, rounds;
	double mib;
	const char *transport;
} opt = {.from = 2, .to = 4, .rounds = 20, .mib = 256, .transport = "shm"};

static int rank, size;
static long elems;

// What this rank has before (send) and afterwards, in elements of 8 bytes.
static struct {
	long first, count;
} before, after;
static uint64_t *data;

// What it gets from each source, and what it sends to each target.
static int *recv_counts, *recv_displs, *send_counts, *send_displs;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t); // all processes of a host have it in common
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void die(const char *what, const char *arg)
{
	fprintf(stderr, "redist: rank %d: %s%s\n", rank, what, arg);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

// block is the published formula: which elements rank r of p has.
static void block(long p, long r, long *first, long *count)
{
	long b = elems / p, rest = elems % p;
	*first = r * b + (r < rest ? r : rest);
	*count = b + (r < rest);
}

static uint64_t value(long i) { return (uint64_t)i * 0x9e3779b97f4a7c15u + 1; }

// overlaps fills in what one block has in common with those of p ranks.
static void overlaps(long first, long count, long p, int *counts, int *displs)
{
	for (long r = 0; r < p; r++) {
		long f, n;
		block(p, r, &f, &n);
		long low = f > first ? f : first, high = f + n < first + count ? f + n : first + count;
		if (low < high)
			counts[r] = high - low, displs[r] = low - first;
	}
}

static void *map(long bytes)
{
	void *p = mmap(NULL, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		die("out of memory", "");
	return p;
}

static void unmap(void *p, long bytes) { munmap(p, bytes > 0 ? bytes : 1); }

static void alltoallv(uint64_t *to)
{
	MPI_Alltoallv(data, send_counts, send_displs, MPI_UINT64_T, to, recv_counts, recv_displs, MPI_UINT64_T, MPI_COMM_WORLD);
}

// get reads this rank's part from a source: of all but the first one from its beginning.
static void get(uint64_t *to, int source, MPI_Win win)
{
	long first, count;
	block(opt.from, source, &first, &count);
	long low = first > after.first ? first : after.first;
	MPI_Get(to + recv_displs[source], recv_counts[source], MPI_UINT64_T, source, low - first, recv_counts[source], MPI_UINT64_T, win);
}

static MPI_Win create(void)
{
	MPI_Win win;
	MPI_Win_create(data, before.count * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	return win;
}

static void rma_lock(uint64_t *to)
{
	MPI_Win win = create();
	for (int s = 0; s < opt.from; s++)
		if (recv_counts[s] > 0) {
			MPI_Win_lock(MPI_LOCK_SHARED, s, MPI_MODE_NOCHECK, win);
			get(to, s, win);
		}
	for (int s = 0; s < opt.from; s++)
		if (recv_counts[s] > 0)
			MPI_Win_unlock(s, win);
	MPI_Win_free(&win);
}

static void rma_lockall(uint64_t *to)
{
	MPI_Win win = create();
	if (after.count > 0) {
		MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
		for (int s = 0; s < opt.from; s++)
			if (recv_counts[s] > 0)
				get(to, s, win);
		MPI_Win_unlock_all(win);
	}
	MPI_Win_free(&win);
}

static const struct {
	const char *name;
	void (*move)(uint64_t *to);
} methods[] = {{"col", alltoallv}, {"rma-lock", rma_lock}, {"rma-lockall", rma_lockall}};

// once is a redistribution, into memory that is there or not (NULL), from the start of the
// first rank to the end of the last one, in milliseconds. All of them get it.
static double once(void (*move)(uint64_t *), uint64_t *to)
{
	uint64_t *fresh = NULL;
	MPI_Barrier(MPI_COMM_WORLD);
	double span[2] = {now()};
	if (to == NULL)
		to = fresh = map(after.count * 8);
	move(to);
	span[1] = now();
	for (long i = 0; i < after.count; i++)
		if (to[i] != value(after.first + i))
			die("wrong data", "");
	if (fresh)
		unmap(fresh, after.count * 8);
	double begun, ended;
	MPI_Allreduce(&span[0], &begun, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(&span[1], &ended, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return 1e3 * (ended - begun);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// quantile interpolates between neighbours, as report.Quantile does.
static double quantile(const double *v, int n, double q)
{
	double at = q * (n - 1);
	int i = (int)at;
	return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

static long least_bytes(void)
{
	// What this rank has before and gets from itself does not move.
	long stays = 8L * recv_counts[rank], all;
	MPI_Allreduce(&stays, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	return 8 * elems - all;
}

static void measure(int m)
{
	static double cold[MAX_ROUNDS], warm[MAX_ROUNDS];
	uint64_t *to = map(after.count * 8);
	memset(to, 1, after.count * 8);
	once(methods[m].move, to); // connects
	for (long i = 0; i < opt.rounds; i++) {
		cold[i] = once(methods[m].move, NULL);
		memset(to, 1, after.count * 8);
		warm[i] = once(methods[m].move, to);
	}
	unmap(to, after.count * 8);
	long least = least_bytes();
	qsort(cold, opt.rounds, sizeof cold[0], ascending);
	qsort(warm, opt.rounds, sizeof warm[0], ascending);
	double c = quantile(cold, opt.rounds, 0.5), w = quantile(warm, opt.rounds, 0.5);
	if (rank == 0)
		printf("{\"bench\":\"redist\",\"transport\":\"%s\",\"ranks\":%ld,\"bytes\":%ld,\"usec\":%.6g,\"usec_min\":%.6g,\"usec_p99\":%.6g,\"MBps\":%.6g,"
		       "\"allocs\":0,\"mib\":%.6g,\"from\":%ld,\"to\":%ld,\"method\":\"%s\",\"strategy\":\"blocking\",\"rounds\":%ld,\"msec\":%.6g,"
		       "\"warm_msec\":%.6g,\"touch_msec\":%.6g,\"moved_bytes\":%ld,\"minimum_bytes\":%ld}\n",
		       opt.transport, opt.from, 8 * elems, 1e3 * c, 1e3 * cold[0], 1e3 * quantile(cold, opt.rounds, 0.99), 8 * elems / (1e3 * c),
		       8 * elems / 1048576.0, opt.from, opt.to, methods[m].name, opt.rounds, c, w, c > w ? c - w : 0, least, least);
	fflush(stdout);
}

static double number(const char *flag, const char *s, double most)
{
	char *end;
	double v = strtod(s, &end);
	if (end == s || *end || !(v > 0 && v <= most))
		die(flag, ": not a number, or too large");
	return v;
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *flag = argv[i];
		if (strcmp(flag, "redist") == 0 || strcmp(flag, "--json") == 0)
			continue;
		if (++i == argc)
			die(flag, ": needs a value");
		if (strcmp(flag, "--from") == 0)
			opt.from = number(flag, argv[i], 4096);
		else if (strcmp(flag, "--to") == 0)
			opt.to = number(flag, argv[i], 4096);
		else if (strcmp(flag, "--rounds") == 0)
			opt.rounds = number(flag, argv[i], MAX_ROUNDS);
		else if (strcmp(flag, "--mib") == 0)
			opt.mib = number(flag, argv[i], 8 << 10); // counts are ints
		else if (strcmp(flag, "--transport") == 0)
			opt.transport = argv[i];
		else if (strcmp(flag, "--strategies") != 0) // there is one
			die("unknown flag ", flag);
	}
	if (size != (opt.from > opt.to ? opt.from : opt.to))
		die("needs as many ranks as the greater one of --from and --to", "");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	parse(argc, argv);
	elems = (long)(opt.mib * (1 << 20)) / 8;
	if (rank < opt.from)
		block(opt.from, rank, &before.first, &before.count);
	if (rank < opt.to)
		block(opt.to, rank, &after.first, &after.count);
	int *list = calloc(4 * size, sizeof(int));
	if (list == NULL)
		die("out of memory", "");
	recv_counts = list, recv_displs = list + size, send_counts = list + 2 * size, send_displs = list + 3 * size;
	overlaps(after.first, after.count, opt.from, recv_counts, recv_displs);
	overlaps(before.first, before.count, opt.to, send_counts, send_displs);
	data = map(before.count * 8);
	for (long i = 0; i < before.count; i++)
		data[i] = value(before.first + i);
	for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++)
		measure(m);
	MPI_Finalize();
	return 0;
}
