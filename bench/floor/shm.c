// SPDX-License-Identifier: Apache-2.0
//
// What two processes need at least that pass messages through shared memory and do nothing
// else, one way, on processors that are near or far (the round trip of a line stands before
// and after each block):
//
//	gcc -O2 bench/floor/shm.c -o floor && ./floor [SECONDS]
//
// lines: 8 bytes, a line for each direction. line: in one line for both. both: in one line,
// both send at once, as in a barrier. Then bytes through a ring of 2 MiB written past the
// cache (x86-64) or by memcpy, of which the receiver copies each 16 KiB while the next are
// written, out of a buffer that nobody changes, and out of that into which the last came.

#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined __x86_64__
#include <emmintrin.h>
#endif

enum { LINE = 64, RING = 2 << 20, PIECE = 16 << 10, MOST = 64 << 10, BLOCKS = 20000 };

struct shared {
	_Alignas(128) _Atomic uint64_t probe[2][LINE / 8];
	_Alignas(128) _Atomic uint64_t own[2][LINE / 4]; // a line for each, apart
	_Alignas(128) _Atomic uint64_t one[LINE / 8];    // halves
	_Alignas(128) _Atomic uint64_t tell[2][LINE / 4];
	_Alignas(128) _Atomic uint64_t block[2][LINE / 4];
	_Alignas(4096) char ring[2][RING];
} *sh;

static int me;
static uint64_t turn[8], at, told, heard;
static char *out, *in;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void await(_Atomic uint64_t *p, uint64_t x)
{
	while (atomic_load_explicit(p, memory_order_acquire) != x)
		;
}

static void post(_Atomic uint64_t *p, uint64_t x) { atomic_store_explicit(p, x, memory_order_release); }

// One iteration of each is there and back.

static void exchange(_Atomic uint64_t *mine, _Atomic uint64_t *other, uint64_t *k)
{
	++*k;
	if (me == 0)
		post(mine, *k), await(other, *k);
	else
		await(other, *k), post(mine, *k);
}

static void probe(long n) { exchange(&sh->probe[me][0], &sh->probe[1 - me][0], &turn[0]); }
static void lines(long n) { exchange(&sh->own[me][0], &sh->own[1 - me][0], &turn[1]); }
static void line(long n) { exchange(&sh->one[4 * me], &sh->one[4 * (1 - me)], &turn[2]); }

// Two of these are counted as there and back.
static void both(long n)
{
	for (int i = 0; i < 2; i++) {
		++turn[2];
		post(&sh->one[4 * me], turn[2]);
		while (atomic_load_explicit(&sh->one[4 * (1 - me)], memory_order_acquire) < turn[2])
			;
	}
}

static void past(char *to, const char *from, long n)
{
#if defined __x86_64__
	for (long i = 0; i < n; i += 16)
		_mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
	_mm_sfence();
#else
	memcpy(to, from, n);
#endif
}

static void put(const char *p, long n, int aside)
{
	for (long i = 0; i < n; i += PIECE) {
		long k = n - i < PIECE ? n - i : PIECE;
		char *to = sh->ring[me] + (at + i) % RING;
		if (aside)
			past(to, p + i, k);
		else
			memcpy(to, p + i, k);
		post(&sh->tell[me][0], ++told);
	}
}

static void take(char *p, long n)
{
	for (long i = 0; i < n; i += PIECE) {
		++heard;
		while (atomic_load_explicit(&sh->tell[1 - me][0], memory_order_acquire) < heard)
			;
		memcpy(p + i, sh->ring[1 - me] + (at + i) % RING, n - i < PIECE ? n - i : PIECE);
	}
}

static void through(long n, int aside, char *from, char *to)
{
	if (at % RING + n > RING)
		at += RING - at % RING;
	if (me == 0)
		put(from, n, aside), take(to, n);
	else
		take(to, n), put(from, n, aside);
	at += n; // whole pages
}

static void plain(long n) { through(n, 0, out, in); }
static void aside(long n) { through(n, 1, out, in); }
static void plain_on(long n) { through(n, 0, in, in); }
static void aside_on(long n) { through(n, 1, in, in); }

static struct floor {
	const char *name;
	void (*f)(long);
	long bytes;
	double near[BLOCKS], far[BLOCKS];
	int nears, fars;
} floors[] = {
	{"lines", lines, 8}, {"line", line, 8}, {"both", both, 8},
	{"plain", plain, 4 << 10}, {"past", aside, 4 << 10}, {"plain", plain, 16 << 10}, {"past", aside, 16 << 10},
	{"plain", plain, 64 << 10}, {"past", aside, 64 << 10}, {"plain, sent on", plain_on, 64 << 10}, {"past, sent on", aside_on, 64 << 10},
};

static double block(void (*f)(long), long bytes, int n)
{
	for (int i = 0; i < n; i++) // both are there, and the ring in the caches
		f(bytes);
	double begin = now();
	for (int i = 0; i < n; i++)
		f(bytes);
	return (now() - begin) / n / 2;
}

static int less(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *x, int n)
{
	qsort(x, n, sizeof *x, less);
	return n ? x[n / 2] : 0;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 10;
	sh = mmap(0, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	memset(sh, 0, sizeof *sh);
	me = fork() == 0;
	cpu_set_t cpu;
	CPU_ZERO(&cpu);
	CPU_SET(me, &cpu);
	if (sched_setaffinity(0, sizeof cpu, &cpu) != 0) {
		perror("two processors are needed");
		_exit(1);
	}
	out = aligned_alloc(4096, MOST), in = aligned_alloc(4096, MOST);
	memset(out, 1, MOST), memset(in, 2, MOST);
	double begin = now();
	int count = sizeof floors / sizeof *floors;
	for (uint64_t k = 1;; k++) {
		// Rank 0 says whether there is another round.
		uint64_t go = k << 1 | (k < BLOCKS && now() - begin < seconds * 1e9);
		if (me == 0)
			post(&sh->block[0][0], go);
		else
			while ((go = atomic_load(&sh->block[0][0])) >> 1 != k)
				;
		if (!(go & 1))
			break;
		for (int i = 0; i < count; i++) {
			struct floor *x = &floors[i];
			double before = 2 * block(probe, 0, 100), took = block(x->f, x->bytes, x->bytes > 8 ? RING / x->bytes : 400), after = 2 * block(probe, 0, 100);
			if (before < 140 && after < 140)
				x->near[x->nears++] = took;
			if (before >= 140 && after >= 140)
				x->far[x->fars++] = took;
		}
	}
	if (me == 0) {
		printf("%-16s %8s %12s %8s %12s %8s\n", "ns one way", "bytes", "near", "blocks", "far", "blocks");
		for (int i = 0; i < count; i++) {
			struct floor *x = &floors[i];
			printf("%-16s %8ld %12.0f %8d %12.0f %8d\n", x->name, x->bytes, median(x->near, x->nears), x->nears, median(x->far, x->fars), x->fars);
		}
	}
	return 0;
}
