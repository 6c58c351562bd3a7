// SPDX-License-Identifier: Apache-2.0
//go:build ignore

// The loops of gompibench for any MPI in C: same arguments, same calibration,
// same statistics, same JSON lines, so that the numbers can be compared. Go's
// tools skip this file (build tag); the runner compiles it with mpicc. See
// package bench for what each loop measures; change both sides together.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 64, LEAST_BLOCKS = 200, MAX_SIZES = 64, MAX_THREADS = 64, MATRIX = 4096, TAG = 1, ACK = 2, OVERLAP_BLOCKS = 50 };

#define MOST_BLOCK 8e-3 // seconds

static struct {
	const char *bench, *transport;
	long bytes[MAX_SIZES];
	int sizes, json, batches, goroutines, overlap, count, rounds;
	long iters; // 0: as many as fit into msec
	double msec;
} opt = {.transport = "shm", .goroutines = 1, .count = 1, .rounds = 1, .msec = 300};

static int rank, size;
static MPI_Comm ring; // all ranks, periodic: of the neighborhood collectives
static MPI_Win window; // of the one-sided operations, allocated and locked by all

// A worker is one thread's share of a loop: mbw runs several, the others one.
typedef struct {
	int index;
	char *sbuf, *rbuf, *matrix; // matrix: of column only
	int *counts, *displs; // of the v-forms, in elements
	MPI_Request reqs[2 * WINDOW];
	long iters; // of one block
	double spent; // bcast: seconds inside the call, this block
	long turns; // of computing inside an iteration
	uint64_t x; // what they compute
} worker;

static worker workers[MAX_THREADS];

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void die(const char *what, const char *arg)
{
	if (rank == 0)
		fprintf(stderr, "peer: %s%s\n", what, arg);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

// The loops. Each runs n iterations and returns when this rank is done.

// pingpong receives into a buffer, and sends another or the same.
static void pingpong(worker *w, long n, long bytes, void *in)
{
	for (long i = 0; i < n; i++) {
		if (rank == 0) {
			MPI_Send(w->sbuf, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
			MPI_Recv(in, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == 1) {
			MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(w->sbuf, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
		}
	}
}

static void latency(worker *w, long n, long bytes) { pingpong(w, n, bytes, w->rbuf); }
static void echo(worker *w, long n, long bytes) { pingpong(w, n, bytes, w->sbuf); }

// stream sends windows from one rank to another, each answered by 4 bytes.
static void stream(worker *w, long n, long bytes, int from, int to)
{
	int tag = 2 * w->index + TAG, ack = 2 * w->index + ACK;
	for (long i = 0; i < n; i++) {
		if (rank == from) {
			for (int k = 0; k < WINDOW; k++)
				MPI_Isend(w->sbuf, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &w->reqs[k]);
			MPI_Waitall(WINDOW, w->reqs, MPI_STATUSES_IGNORE);
			char four[4];
			MPI_Recv(four, 4, MPI_BYTE, to, ack, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == to) {
			for (int k = 0; k < WINDOW; k++)
				MPI_Irecv(w->rbuf, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &w->reqs[k]);
			MPI_Waitall(WINDOW, w->reqs, MPI_STATUSES_IGNORE);
			char four[4] = {0};
			MPI_Send(four, 4, MPI_BYTE, from, ack, MPI_COMM_WORLD);
		}
	}
}

static void bw(worker *w, long n, long bytes) { stream(w, n, bytes, 0, 1); }

static void bibw(worker *w, long n, long bytes)
{
	for (long i = 0; i < n && rank < 2; i++) {
		int peer = 1 - rank;
		for (int k = 0; k < WINDOW; k++)
			MPI_Irecv(w->rbuf, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &w->reqs[k]);
		for (int k = 0; k < WINDOW; k++)
			MPI_Isend(w->sbuf, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &w->reqs[WINDOW + k]);
		MPI_Waitall(2 * WINDOW, w->reqs, MPI_STATUSES_IGNORE);
	}
}

static void mbw(worker *w, long n, long bytes)
{
	int half = size / 2;
	if (rank < half)
		stream(w, n, bytes, rank, rank + half);
	else
		stream(w, n, bytes, rank - half, rank);
}

static void barrier(worker *w, long n, long bytes)
{
	(void)w, (void)bytes;
	for (long i = 0; i < n; i++)
		MPI_Barrier(MPI_COMM_WORLD);
}

// Collectives: FOLLOW makes the loop of one in which every rank waits for every
// other, APART of one whose calls a barrier separates.
#define W MPI_COMM_WORLD
#define S w->sbuf
#define R w->rbuf
#define FOLLOW(name, call)                                                                                              \
	static void name(worker *w, long n, long bytes)                                                                      \
	{                                                                                                                    \
		int blk = bytes, dbl = bytes / 8, part = (bytes + size - 1) / size;                                              \
		(void)blk, (void)dbl, (void)part, (void)w;                                                                       \
		for (long i = 0; i < n; i++)                                                                                     \
			call;                                                                                                        \
	}
#define APART(name, call)                                                                                               \
	static void name(worker *w, long n, long bytes)                                                                      \
	{                                                                                                                    \
		int blk = bytes, dbl = bytes / 8;                                                                                \
		(void)blk, (void)dbl;                                                                                            \
		for (long i = 0; i < n; i++) {                                                                                   \
			double t = now();                                                                                            \
			call;                                                                                                        \
			w->spent += now() - t;                                                                                       \
			MPI_Barrier(W);                                                                                              \
		}                                                                                                                \
	}
FOLLOW(allreduce, MPI_Allreduce(S, R, dbl, MPI_DOUBLE, MPI_SUM, W))
FOLLOW(allgather, MPI_Allgather(S, blk, MPI_BYTE, R, blk, MPI_BYTE, W))
FOLLOW(allgatherv, MPI_Allgatherv(S, blk, MPI_BYTE, R, w->counts, w->displs, MPI_BYTE, W))
FOLLOW(alltoall, MPI_Alltoall(S, part, MPI_BYTE, R, part, MPI_BYTE, W))
FOLLOW(alltoallv, MPI_Alltoallv(S, w->counts, w->displs, MPI_BYTE, R, w->counts, w->displs, MPI_BYTE, W))
FOLLOW(reduce_scatter_block, MPI_Reduce_scatter_block(S, R, dbl, MPI_DOUBLE, MPI_SUM, W))
FOLLOW(reduce_scatter, MPI_Reduce_scatter(S, R, w->counts, MPI_DOUBLE, MPI_SUM, W))
APART(bcast, MPI_Bcast(S, blk, MPI_BYTE, 0, W))
APART(gather, MPI_Gather(S, blk, MPI_BYTE, R, blk, MPI_BYTE, 0, W))
APART(gatherv, MPI_Gatherv(S, blk, MPI_BYTE, R, w->counts, w->displs, MPI_BYTE, 0, W))
APART(scatter, MPI_Scatter(S, blk, MPI_BYTE, R, blk, MPI_BYTE, 0, W))
APART(scatterv, MPI_Scatterv(S, w->counts, w->displs, MPI_BYTE, R, blk, MPI_BYTE, 0, W))
APART(reduce, MPI_Reduce(S, R, dbl, MPI_DOUBLE, MPI_SUM, 0, W))
APART(scan, MPI_Scan(S, R, dbl, MPI_DOUBLE, MPI_SUM, W))
APART(exscan, MPI_Exscan(S, R, dbl, MPI_DOUBLE, MPI_SUM, W))
FOLLOW(neighbor_allgather, MPI_Neighbor_allgather(S, blk, MPI_BYTE, R, blk, MPI_BYTE, ring))
FOLLOW(neighbor_allgatherv, MPI_Neighbor_allgatherv(S, blk, MPI_BYTE, R, w->counts, w->displs, MPI_BYTE, ring))
FOLLOW(neighbor_alltoall, MPI_Neighbor_alltoall(S, blk, MPI_BYTE, R, blk, MPI_BYTE, ring))
FOLLOW(neighbor_alltoallv, MPI_Neighbor_alltoallv(S, w->counts, w->displs, MPI_BYTE, R, w->counts, w->displs, MPI_BYTE, ring))

// compute calls no library; each turn needs the result of the one before.
static void compute(worker *w)
{
	uint64_t x = w->x;
	for (long i = 0; i < w->turns; i++)
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	w->x = x;
}

// START makes the loop of a nonblocking collective with computing meanwhile.
#define START(name, call)                                                                                               \
	static void name(worker *w, long n, long bytes)                                                                      \
	{                                                                                                                    \
		int blk = bytes, dbl = bytes / 8, part = (bytes + size - 1) / size;                                              \
		(void)blk, (void)dbl, (void)part;                                                                                \
		for (long i = 0; i < n; i++) {                                                                                   \
			MPI_Request q;                                                                                               \
			double t = now();                                                                                            \
			call;                                                                                                        \
			compute(w);                                                                                                  \
			MPI_Wait(&q, MPI_STATUS_IGNORE);                                                                             \
			w->spent += now() - t;                                                                                       \
			MPI_Barrier(W);                                                                                              \
		}                                                                                                                \
	}
START(ibarrier, MPI_Ibarrier(W, &q))
START(ibcast, MPI_Ibcast(S, blk, MPI_BYTE, 0, W, &q))
START(iallgather, MPI_Iallgather(S, blk, MPI_BYTE, R, blk, MPI_BYTE, W, &q))
START(ialltoall, MPI_Ialltoall(S, part, MPI_BYTE, R, part, MPI_BYTE, W, &q))
START(ialltoallv, MPI_Ialltoallv(S, w->counts, w->displs, MPI_BYTE, R, w->counts, w->displs, MPI_BYTE, W, &q))
START(ireduce, MPI_Ireduce(S, R, dbl, MPI_DOUBLE, MPI_SUM, 0, W, &q))
START(iallreduce, MPI_Iallreduce(S, R, dbl, MPI_DOUBLE, MPI_SUM, W, &q))
#undef W
#undef S
#undef R

// ONESIDED makes the loop of an operation of rank 0 on rank 1's memory, complete
// there before the next begins.
#define ONESIDED(name, call)                                                                                            \
	static void name(worker *w, long n, long bytes)                                                                      \
	{                                                                                                                    \
		int blk = bytes, dbl = bytes / 8;                                                                                \
		(void)blk, (void)dbl;                                                                                            \
		for (long i = 0; i < n && rank == 0; i++) {                                                                      \
			call;                                                                                                        \
			MPI_Win_flush(1, window);                                                                                    \
		}                                                                                                                \
	}
#define S w->sbuf
#define R w->rbuf
ONESIDED(put, MPI_Put(S, blk, MPI_BYTE, 1, 0, blk, MPI_BYTE, window))
ONESIDED(get, MPI_Get(R, blk, MPI_BYTE, 1, 0, blk, MPI_BYTE, window))
ONESIDED(acc, MPI_Accumulate(S, dbl, MPI_DOUBLE, 1, 0, dbl, MPI_DOUBLE, MPI_SUM, window))
ONESIDED(getacc, MPI_Get_accumulate(S, dbl, MPI_DOUBLE, R, dbl, MPI_DOUBLE, 1, 0, dbl, MPI_DOUBLE, MPI_SUM, window))
ONESIDED(fao, MPI_Fetch_and_op(S, R, MPI_INT64_T, 1, 0, MPI_SUM, window))
ONESIDED(cas, MPI_Compare_and_swap(S, S, R, MPI_INT64_T, 1, 0, window))
#undef S
#undef R

// win makes a window of memory that is there, and frees it.
static void win(worker *w, long n, long bytes)
{
	for (long i = 0; i < n; i++) {
		MPI_Win x;
		MPI_Win_create(w->sbuf, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &x);
		MPI_Win_free(&x);
	}
}

// winalloc makes a window of new memory, and frees it.
static void winalloc(worker *w, long n, long bytes)
{
	(void)w;
	for (long i = 0; i < n; i++) {
		MPI_Win x;
		void *memory;
		MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &x);
		MPI_Win_free(&x);
	}
}

// column exchanges columns of a matrix of doubles: the last ones here become
// the first ones there.
static void column(worker *w, long n, long bytes)
{
	int columns = bytes / (MATRIX * 8), peer = 1 - rank;
	MPI_Datatype type;
	MPI_Type_vector(MATRIX, columns, MATRIX, MPI_DOUBLE, &type);
	MPI_Type_commit(&type);
	char *out = w->matrix + (MATRIX - columns) * 8;
	for (long i = 0; i < n; i++) {
		MPI_Request in;
		MPI_Irecv(w->matrix, 1, type, peer, TAG, MPI_COMM_WORLD, &in);
		MPI_Send(out, 1, type, peer, TAG, MPI_COMM_WORLD);
		MPI_Wait(&in, MPI_STATUS_IGNORE);
	}
	MPI_Type_free(&type);
}

// blocks scatters the columns of a square matrix of doubles from rank 0. A block has the
// extent of one column, so that displacements count columns: such elements overlap.
static void blocks(worker *w, long n, long bytes)
{
	long rows = 1;
	while ((rows + 1) * (rows + 1) * 8 <= bytes)
		rows++;
	int columns = rows / size;
	for (int r = 0; r < size; r++)
		w->counts[r] = 1, w->displs[r] = r * columns;
	MPI_Datatype block, type;
	MPI_Type_vector(rows, columns, rows, MPI_DOUBLE, &block);
	MPI_Type_create_resized(block, 0, 8, &type);
	MPI_Type_commit(&type);
	for (long i = 0; i < n; i++) {
		double t = now();
		MPI_Scatterv(w->sbuf, w->counts, w->displs, type, w->rbuf, rows * columns, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		w->spent += now() - t;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Type_free(&block);
	MPI_Type_free(&type);
}

// What a collective's size is of, and how many blocks its buffers have.
enum form { PLAIN, MANY = 1, TOTAL = 2, DOUBLES = 4, RING = 8, REQUEST = 16, WINDOWED = 32 };

enum whose { RANK0, SENDERS, MEAN }; // whose clock counts, see package bench

static const struct bench {
	const char *name;
	void (*loop)(worker *, long n, long bytes);
	int ops; // operations of one iteration
	enum whose whose;
	int p2p;
	const char *bytes;
	enum form form;
} benches[] = {
	{"latency", latency, 2, RANK0, 1, "1,8,64,512,4K,32K,64K,256K,1M,4M", PLAIN},
	{"echo", echo, 2, RANK0, 1, "1,8,64,512,4K,32K,64K,256K,1M,4M", PLAIN},
	{"bw", bw, WINDOW, RANK0, 1, "1,8,64,512,4K,32K,64K,256K,1M,4M", PLAIN},
	{"bibw", bibw, 2 * WINDOW, RANK0, 1, "1,8,64,512,4K,32K,64K,256K,1M,4M", PLAIN},
	{"mbw", mbw, WINDOW, SENDERS, 0, "1,8,64,512,4K,32K,64K,256K,1M,4M", PLAIN},
	{"column", column, 1, RANK0, 1, "32K,64K,256K,1M,4M,32M", PLAIN},
	{"blocks", blocks, 1, MEAN, 0, "32K,128K,512K,2M,8M,32M", PLAIN},
	{"barrier", barrier, 1, RANK0, 0, "0", PLAIN},
#define SIZES "8,64,512,4K,32K,256K,1M,4M"
	{"bcast", bcast, 1, MEAN, 0, SIZES, PLAIN},
	{"gather", gather, 1, MEAN, 0, SIZES, MANY},
	{"gatherv", gatherv, 1, MEAN, 0, SIZES, MANY},
	{"scatter", scatter, 1, MEAN, 0, SIZES, MANY},
	{"scatterv", scatterv, 1, MEAN, 0, SIZES, MANY},
	{"allgather", allgather, 1, RANK0, 0, SIZES, MANY},
	{"allgatherv", allgatherv, 1, RANK0, 0, SIZES, MANY},
	{"alltoall", alltoall, 1, RANK0, 0, SIZES, TOTAL},
	{"alltoallv", alltoallv, 1, RANK0, 0, SIZES, TOTAL},
	{"reduce", reduce, 1, MEAN, 0, SIZES, DOUBLES},
	{"allreduce", allreduce, 1, RANK0, 0, SIZES, DOUBLES},
	{"reduce_scatter_block", reduce_scatter_block, 1, RANK0, 0, SIZES, MANY | DOUBLES},
	{"reduce_scatter", reduce_scatter, 1, RANK0, 0, SIZES, MANY | DOUBLES},
	{"scan", scan, 1, MEAN, 0, SIZES, DOUBLES},
	{"exscan", exscan, 1, MEAN, 0, SIZES, DOUBLES},
	{"neighbor_allgather", neighbor_allgather, 1, RANK0, 0, SIZES, RING},
	{"neighbor_allgatherv", neighbor_allgatherv, 1, RANK0, 0, SIZES, RING},
	{"neighbor_alltoall", neighbor_alltoall, 1, RANK0, 0, SIZES, RING},
	{"neighbor_alltoallv", neighbor_alltoallv, 1, RANK0, 0, SIZES, RING},
	{"ibarrier", ibarrier, 1, MEAN, 0, "0", REQUEST},
	{"ibcast", ibcast, 1, MEAN, 0, SIZES, REQUEST},
	{"iallgather", iallgather, 1, MEAN, 0, SIZES, REQUEST | MANY},
	{"ialltoall", ialltoall, 1, MEAN, 0, SIZES, REQUEST | TOTAL},
	{"ialltoallv", ialltoallv, 1, MEAN, 0, SIZES, REQUEST | TOTAL},
	{"ireduce", ireduce, 1, MEAN, 0, SIZES, REQUEST | DOUBLES},
	{"iallreduce", iallreduce, 1, MEAN, 0, SIZES, REQUEST | DOUBLES},
	{"put", put, 1, RANK0, 1, SIZES, WINDOWED},
	{"get", get, 1, RANK0, 1, SIZES, WINDOWED},
	{"acc", acc, 1, RANK0, 1, SIZES, WINDOWED | DOUBLES},
	{"getacc", getacc, 1, RANK0, 1, SIZES, WINDOWED | DOUBLES},
	{"fao", fao, 1, RANK0, 1, "8", WINDOWED | DOUBLES},
	{"cas", cas, 1, RANK0, 1, "8", WINDOWED | DOUBLES},
	{"win", win, 1, RANK0, 0, "8,4M", PLAIN},
	{"winalloc", winalloc, 1, RANK0, 0, "8,64K,1M,64M", PLAIN},
	{"startup", NULL, 1, RANK0, 0, "0", PLAIN},
	{"spawn", NULL, 1, RANK0, 0, "0", PLAIN},
};

static const struct bench *bench;
static long bytes_now;

static void *run_worker(void *p)
{
	worker *w = p;
	bench->loop(w, w->iters, bytes_now);
	return NULL;
}

// block runs n iterations on every thread and returns the seconds they took
// on this rank (mbw: threads are started anew for each block, as goroutines
// are on the other side).
static double block(long n)
{
	pthread_t threads[MAX_THREADS];
	workers[0].spent = 0;
	double t = now();
	for (int k = 0; k < opt.goroutines; k++)
		workers[k].iters = n;
	for (int k = 1; k < opt.goroutines; k++)
		if (pthread_create(&threads[k], NULL, run_worker, &workers[k]) != 0)
			die("cannot start a thread", "");
	run_worker(&workers[0]);
	for (int k = 1; k < opt.goroutines; k++)
		pthread_join(threads[k], NULL);
	return bench->whose == MEAN ? workers[0].spent : now() - t;
}

static double min(double a, double b) { return a < b ? a : b; }

// elapsed is the time of n iterations as rank 0 sees it, whatever of it counts.
static double elapsed(long n)
{
	double t = now();
	block(n);
	return now() - t;
}

// calibrate finds how many iterations fit into opt.msec, and about how long they take; it
// warms up as well. The faster of two runs counts: one may have connected, or been
// interrupted.
static long calibrate(double *took)
{
	double want = opt.msec * 1e-3;
	for (long n = 1;; n *= 2) {
		double t = elapsed(n);
		t = min(t, elapsed(n));
		double plan[2] = {0, 0};
		if (t >= want / 20 || n >= 1L << 40) {
			double est = want / t * n;
			plan[0] = est < 1 ? 1 : (double)(long)min(est, 1e12);
			plan[1] = plan[0] * t / n;
		}
		MPI_Bcast(plan, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		if (plan[0] > 0) {
			*took = plan[1];
			return (long)plan[0];
		}
	}
}

// A probe is how long a line of memory takes between two ranks of a host, there and back:
// see probe.go, which does the same.
static struct {
	_Alignas(64) uint64_t turn;
	volatile uint64_t *word; // NULL: there is none
} line;

enum { PROBE_BYTES = 4096, PROBE_NONCE = 2048, PROBE_SERIES = 4, PROBE_TRIPS = 64, PROBE_SPINS = 1 << 12, TAG_NEVER = 32766 };

// make_line shares a page between both ranks, if it can.
static void make_line(void)
{
	int fd = -1, have;
	struct {
		char path[64];
		uint64_t nonce[2];
	} at = {"", {0, 0}};
	if (rank == 0 && (fd = memfd_create("peer", MFD_CLOEXEC)) >= 0) {
		at.nonce[0] = (uint64_t)(now() * 1e9), at.nonce[1] = (uint64_t)getpid() << 32 | (uintptr_t)&at >> 4;
		if (ftruncate(fd, PROBE_BYTES) == 0 && pwrite(fd, at.nonce, sizeof at.nonce, PROBE_NONCE) == sizeof at.nonce)
			snprintf(at.path, sizeof at.path, "/proc/%d/fd/%d", (int)getpid(), fd);
	}
	MPI_Bcast(&at, sizeof at, MPI_BYTE, 0, MPI_COMM_WORLD);
	if (rank != 0 && at.path[0] && (fd = open(at.path, O_RDWR | O_CLOEXEC)) >= 0) {
		uint64_t nonce[2];
		if (pread(fd, nonce, sizeof nonce, PROBE_NONCE) != sizeof nonce || memcmp(nonce, at.nonce, sizeof nonce) != 0)
			at.path[0] = 0;
	}
	void *m = MAP_FAILED;
	if (at.path[0] && fd >= 0)
		m = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int mine = m != MAP_FAILED;
	MPI_Allreduce(&mine, &have, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
	if (fd >= 0)
		close(fd);
	line.word = have ? m : NULL;
}

// await_line returns when the line has come. Whom the other is behind in the library, or on
// the same processor, must let it go on.
static void await_line(uint64_t turn)
{
	for (long n = 1; __atomic_load_n(line.word, __ATOMIC_ACQUIRE) != turn; n++)
		if (n % PROBE_SPINS == 0) {
			int found;
			MPI_Iprobe(1 - rank, TAG_NEVER, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
			sched_yield();
		}
}

// probe is a round trip of the line as rank 0 sees it, in nanoseconds; 0: there is none.
static double probe(void)
{
	double best = 0;
	if (line.word == NULL)
		return 0;
	MPI_Barrier(MPI_COMM_WORLD); // who waits does so in the library
	for (int k = 0; k < PROBE_SERIES; k++) {
		double t = now();
		for (int i = 0; i < PROBE_TRIPS; i++) {
			line.turn += 2;
			if (rank == 0) {
				__atomic_store_n(line.word, line.turn - 1, __ATOMIC_RELEASE);
				await_line(line.turn);
			} else {
				await_line(line.turn - 1);
				__atomic_store_n(line.word, line.turn, __ATOMIC_RELEASE);
			}
		}
		t = (now() - t) * 1e9 / PROBE_TRIPS;
		best = k == 0 || t < best ? t : best;
	}
	return best;
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

static void *buffer(long bytes)
{
	void *p = NULL;
	if (posix_memalign(&p, 4096, bytes > 0 ? bytes : 1) != 0)
		die("out of memory", "");
	memset(p, 0, bytes > 0 ? bytes : 1); // touched: page faults are not measured
	return p;
}

static double mean_median(double *v, int n)
{
	double all[OVERLAP_BLOCKS];
	MPI_Allreduce(v, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	qsort(all, n, sizeof all[0], ascending);
	return quantile(all, n, 0.5) / size;
}

// overlap is the share of a collective's time, in per cent, that is hidden
// behind computing for as long as it takes alone: usec, nearly.
static double overlap(double usec)
{
	worker *w = &workers[0];
	double want = usec * 1e-6;
	long plan[2] = {0, 0}; // turns, iterations
	for (long n = 1 << 10; plan[0] == 0; n *= 2) {
		w->turns = n;
		double t = now();
		compute(w);
		t = now() - t;
		if (t >= want / 20)
			plan[0] = t > 0 && want / t * n > 1 ? (long)(want / t * n) : 1;
		plan[1] = opt.iters > 0 ? opt.iters : want > 0 && opt.msec * 1e-3 / (5 * want) > 1 ? (long)(opt.msec * 1e-3 / (5 * want)) : 1;
		MPI_Bcast(plan, 2, MPI_LONG, 0, MPI_COMM_WORLD);
	}
	int blocks = (int)min(plan[1], OVERLAP_BLOCKS);
	long each = plan[1] / blocks;
	double alone[OVERLAP_BLOCKS], computing[OVERLAP_BLOCKS], both[OVERLAP_BLOCKS];
	for (int b = 0; b < blocks; b++) {
		w->turns = 0;
		MPI_Barrier(MPI_COMM_WORLD);
		alone[b] = block(each) / each;
		w->turns = plan[0];
		MPI_Barrier(MPI_COMM_WORLD);
		double t = now();
		for (long i = 0; i < each; i++)
			compute(w);
		computing[b] = (now() - t) / each;
		MPI_Barrier(MPI_COMM_WORLD);
		both[b] = block(each) / each;
	}
	w->turns = 0;
	double a = mean_median(alone, blocks);
	double more = mean_median(both, blocks) - mean_median(computing, blocks);
	return a <= 0 || more >= a ? 0 : more <= 0 ? 100 : 100 * (1 - more / a);
}

// tell prints a point: the times of its blocks sorted, and in their order with the probes.
static void tell(long bytes, const double *usec, int blocks, const char *more, const double *each, const double *before, const double *after)
{
	double mid = quantile(usec, blocks, 0.5), rate = mid > 0 ? bytes / mid : 0;
	if (!opt.json) {
		printf("%-10s %-6s %5d %10ld %12.4g %12.4g %12.4g %10.4g%s\n",
		       opt.bench, opt.transport, size, bytes, mid, usec[0], quantile(usec, blocks, 0.99), rate, more);
		fflush(stdout);
		return;
	}
	printf("{\"bench\":\"%s\",\"transport\":\"%s\",\"ranks\":%d,\"bytes\":%ld,\"usec\":%.6g,\"usec_min\":%.6g,"
	       "\"usec_p99\":%.6g,\"MBps\":%.6g,\"allocs\":0%s",
	       opt.bench, opt.transport, size, bytes, mid, usec[0], quantile(usec, blocks, 0.99), rate, more);
	if (opt.batches && line.word != NULL) {
		for (int b = 0; b < blocks; b++)
			printf("%s[%.6g,%.6g,%.6g]", b == 0 ? ",\"batches\":[" : ",", each[b], before[b], after[b]);
		printf("]");
	}
	printf("}\n");
	fflush(stdout);
}

static void measure(long bytes)
{
	workers[0].turns = 0;
	workers[0].x = 1;
	bytes_now = bytes;
	int each_side = bench->form & MANY ? size : bench->form & RING ? 2 : 1;
	long room = bench->form & TOTAL ? bytes + size : bytes * each_side;
	for (int k = 0; k < opt.goroutines; k++) {
		workers[k].index = k;
		workers[k].sbuf = buffer(room);
		workers[k].rbuf = buffer(room);
	}
	int element = bench->form & DOUBLES ? 8 : 1;
	int each_rank = (bench->form & TOTAL ? (bytes + size - 1) / size : bytes) / element;
	int entries = size > 2 ? size : 2;
	workers[0].counts = buffer(entries * sizeof(int));
	workers[0].displs = buffer(entries * sizeof(int));
	for (int r = 0; r < entries; r++)
		workers[0].counts[r] = each_rank, workers[0].displs[r] = r * each_rank;
	if (bench->loop == column)
		workers[0].matrix = buffer((long)MATRIX * MATRIX * 8);
	if (bench->form & WINDOWED) {
		char *memory;
		MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
		memset(memory, 0, bytes); // touched: page faults are not measured
		MPI_Win_lock_all(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	long iters = opt.iters;
	double took = 0;
	if (iters == 0)
		iters = calibrate(&took);
	else {
		long n = iters < 20 ? iters : iters / 20 < 20 ? 20 : iters / 20;
		took = elapsed(n) * iters / n;
		MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	}
	double most = took / MOST_BLOCK > LEAST_BLOCKS ? took / MOST_BLOCK : LEAST_BLOCKS;
	int blocks = (int)min(iters, most);
	long each = iters / blocks;
	double *usec = buffer(blocks * sizeof(double)), *all = buffer(blocks * sizeof(double));
	double *before = buffer(blocks * sizeof(double)), *after = buffer(blocks * sizeof(double));
	MPI_Barrier(MPI_COMM_WORLD);
	double last = probe();
	for (int b = 0; b < blocks; b++) {
		usec[b] = block(each) * 1e6 / each / (bench->ops * (double)opt.goroutines);
		before[b] = last;
		after[b] = last = probe();
	}

	if (bench->whose == SENDERS) { // rates of the pairs add up
		for (int b = 0; b < blocks; b++)
			usec[b] = rank < size / 2 ? 1 / usec[b] : 0;
		MPI_Allreduce(usec, all, blocks, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		for (int b = 0; b < blocks; b++)
			usec[b] = 1 / all[b];
	} else if (bench->whose == MEAN) {
		MPI_Allreduce(usec, all, blocks, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		for (int b = 0; b < blocks; b++)
			usec[b] = all[b] / size;
	}
	memcpy(all, usec, blocks * sizeof(double)); // in their order
	qsort(usec, blocks, sizeof usec[0], ascending);
	double mid = quantile(usec, blocks, 0.5);
	char overlapped[32] = "";
	if (opt.overlap)
		snprintf(overlapped, sizeof overlapped, ",\"overlap\":%.4g", overlap(mid));
	if (bench->form & WINDOWED) {
		MPI_Win_unlock_all(window);
		MPI_Win_free(&window);
	}
	for (int k = 0; k < opt.goroutines; k++) {
		free(workers[k].sbuf);
		free(workers[k].rbuf);
	}
	free(workers[0].matrix);
	workers[0].matrix = NULL;
	free(workers[0].counts);
	free(workers[0].displs);
	if (rank == 0)
		tell(bytes, usec, blocks, overlapped, all, before, after);
	free(usec);
	free(all);
	free(before);
	free(after);
}

// parse_long takes digits only; suffixes adds K, M and G.
static long parse_long(const char *flag, const char *s, char **end, int suffixes)
{
	errno = 0;
	char *e;
	long v = strtol(s, &e, 10), unit = 1;
	if (suffixes && (*e == 'K' || *e == 'M' || *e == 'G'))
		unit = *e == 'K' ? 1 << 10 : *e == 'M' ? 1 << 20 : 1 << 30, e++;
	if (e == s || errno || v < 0 || v > INT32_MAX / unit || (end == NULL && *e))
		die(flag, ": not a number, or too large");
	if (end)
		*end = e;
	return v * unit;
}

static void parse_bytes(const char *s)
{
	opt.sizes = 0;
	for (char *e;; s = e + 1) {
		if (opt.sizes == MAX_SIZES)
			die("--bytes", ": too many sizes");
		opt.bytes[opt.sizes++] = parse_long("--bytes", s, &e, 1);
		if (*e == 0)
			return;
		if (*e != ',')
			die("--bytes: not a list of sizes: ", s);
	}
}

// version prints which library this is, up to the first comma or end of line.
static void version(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int n;
	MPI_Get_library_version(text, &n);
	if (rank == 0)
		printf("%.*s\n", (int)strcspn(text, ",\n"), text);
}

// spawn times MPI_Comm_spawn of opt.count processes by one rank. It returns when all are
// in MPI_Init, or have left it: the communicator is made by all of them.
static void spawn(char *program)
{
	char *args[] = {"spawn", NULL};
	double usec[LEAST_BLOCKS];
	int n = opt.rounds < 1 ? 1 : opt.rounds < LEAST_BLOCKS ? opt.rounds : LEAST_BLOCKS;
	for (int i = 0; i < n; i++) {
		MPI_Comm children;
		double began = now();
		MPI_Comm_spawn(program, args, opt.count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
		usec[i] = 1e6 * (now() - began);
		MPI_Barrier(children);
		MPI_Comm_disconnect(&children);
	}
	qsort(usec, n, sizeof usec[0], ascending);
	if (rank == 0)
		printf("{\"bench\":\"spawn\",\"transport\":\"%s\",\"ranks\":%d,\"bytes\":0,\"usec\":%.6g,\"usec_min\":%.6g}\n",
		       opt.transport, opt.count, quantile(usec, n, 0.5), usec[0]);
	fflush(stdout);
}

static void parse(int argc, char **argv)
{
	opt.bench = argc > 1 ? argv[1] : "";
	for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
		if (strcmp(benches[i].name, opt.bench) == 0)
			bench = &benches[i];
	if (bench == NULL)
		die("no such benchmark: ", opt.bench);
	parse_bytes(bench->bytes);
	for (int i = 2; i < argc; i++) {
		const char *flag = argv[i];
		if (strcmp(flag, "--json") == 0) {
			opt.json = 1;
			continue;
		}
		if (strcmp(flag, "--batches") == 0) {
			opt.batches = 1;
			continue;
		}
		if (strcmp(flag, "--overlap") == 0) {
			opt.overlap = 1;
			continue;
		}
		if (++i == argc)
			die(flag, ": needs a value");
		if (strcmp(flag, "--bytes") == 0)
			parse_bytes(argv[i]);
		else if (strcmp(flag, "--iters") == 0)
			opt.iters = parse_long(flag, argv[i], NULL, 0);
		else if (strcmp(flag, "--msec") == 0)
			opt.msec = parse_long(flag, argv[i], NULL, 0);
		else if (strcmp(flag, "--count") == 0)
			opt.count = parse_long(flag, argv[i], NULL, 0);
		else if (strcmp(flag, "--rounds") == 0)
			opt.rounds = parse_long(flag, argv[i], NULL, 0);
		else if (strcmp(flag, "--transport") == 0)
			opt.transport = argv[i];
		else if (strcmp(flag, "--goroutines") == 0)
			opt.goroutines = parse_long(flag, argv[i], NULL, 0);
		else
			die("unknown flag ", flag);
	}
	if (opt.goroutines < 1 || opt.goroutines > MAX_THREADS || (opt.goroutines > 1 && bench->loop != mbw))
		die("--goroutines", ": 1 to 64, and only for mbw");
	if (opt.overlap && !(bench->form & REQUEST))
		die(opt.bench, ": --overlap is of nonblocking collectives");
	if (bench->p2p && size != 2)
		die(opt.bench, ": needs 2 ranks");
	if (bench->loop == mbw && size % 2)
		die(opt.bench, ": needs an even number of ranks");
}

int main(int argc, char **argv)
{
	// Most threads are not needed, and asking for them costs time: only mbw
	// with several does.
	int want = MPI_THREAD_SINGLE, got;
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--goroutines") == 0)
			want = MPI_THREAD_MULTIPLE;
	MPI_Init_thread(&argc, &argv, want, &got);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc == 2 && strcmp(argv[1], "version") == 0) {
		version();
		MPI_Finalize();
		return 0;
	}
	parse(argc, argv);
	if (opt.goroutines > 1 && got < MPI_THREAD_MULTIPLE)
		die("this MPI has no MPI_THREAD_MULTIPLE", "");
	MPI_Comm parent;
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL) {
		MPI_Barrier(parent);
		MPI_Comm_disconnect(&parent);
	} else if (strcmp(opt.bench, "spawn") == 0)
		spawn(argv[0]);
	if (size == 2)
		make_line();
	int periodic = 1;
	if (bench->form & RING)
		MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
	for (int i = 0; bench->loop && i < opt.sizes; i++) {
		if (bench->form & DOUBLES && opt.bytes[i] % 8 != 0)
			die("--bytes: sums of float64 take multiples of 8", "");
		if (bench->loop == column && (opt.bytes[i] % (MATRIX * 8) != 0 || opt.bytes[i] > (long)MATRIX * MATRIX * 4))
			die("--bytes: column takes multiples of 32K up to half the matrix, 64M", "");
		measure(opt.bytes[i]);
	}
	MPI_Finalize();
	return 0;
}
