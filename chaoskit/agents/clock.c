/* A wall clock that is ahead of the real one by what a file says (see clock.py).

   Preloaded into an agent. Only CLOCK_REALTIME is moved. Who waits until a moment on
   that clock gives the kernel the moment on the real one; who waits for a span of time
   is not touched. The file is mapped, so that a jump is seen by every process at its
   next look at the clock. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NANO 1000000000LL
/* No machine has been up for so many seconds: a later moment is one of the wall clock. */
#define WALL_SECONDS_MIN 500000000LL

typedef struct timespec ts;

static const int64_t none = 0;
static const volatile int64_t *ahead = &none; /* nanoseconds */

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("CHAOSKIT_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) ahead = page;
    close(file);
}

static ts moved(ts when, int64_t by) {
    int64_t nano = when.tv_nsec + by % NANO;
    when.tv_sec += by / NANO + (nano >= NANO) - (nano < 0);
    when.tv_nsec = nano + (nano < 0) * NANO - (nano >= NANO) * NANO;
    return when;
}

static const ts *real(const ts *when, ts *room) {
    if (when == NULL || when->tv_sec < WALL_SECONDS_MIN) return when;
    *room = moved(*when, -*ahead);
    return room;
}

static int is_wall(clockid_t id) {
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI;
}

/* The newest version: asked by name alone, glibc may answer with an ancient one. */
static void *next(const char *name, const char *version) {
    void *found = dlvsym(RTLD_NEXT, name, version);
    return found ? found : dlsym(RTLD_NEXT, name);
}

#define NEXT(name, version) \
    static __typeof__(&name) other; \
    if (other == NULL) other = (__typeof__(&name))next(#name, version)

int clock_gettime(clockid_t id, ts *now) {
    NEXT(clock_gettime, "GLIBC_2.17");
    int failed = other(id, now);
    if (!failed && *ahead && is_wall(id)) *now = moved(*now, *ahead);
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    ts wall;
    NEXT(gettimeofday, "GLIBC_2.2.5");
    if (*ahead == 0) return other(now, zone);
    clock_gettime(CLOCK_REALTIME, &wall);
    now->tv_sec = wall.tv_sec;
    now->tv_usec = wall.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    ts wall;
    clock_gettime(CLOCK_REALTIME_COARSE, &wall);
    if (now) *now = wall.tv_sec;
    return wall.tv_sec;
}

int timespec_get(ts *now, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

int clock_nanosleep(clockid_t id, int flags, const ts *when, ts *left) {
    ts room;
    NEXT(clock_nanosleep, "GLIBC_2.17");
    int moment = is_wall(id) && (flags & TIMER_ABSTIME);
    return other(id, flags, moment ? real(when, &room) : when, left);
}

int sem_timedwait(sem_t *semaphore, const ts *when) {
    ts room;
    NEXT(sem_timedwait, "GLIBC_2.34");
    return other(semaphore, real(when, &room));
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const ts *when) {
    ts room;
    NEXT(pthread_mutex_timedlock, "GLIBC_2.34");
    return other(mutex, real(when, &room));
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const ts *when) {
    ts room;
    NEXT(pthread_cond_timedwait, "GLIBC_2.3.2");
    return other(cond, mutex, real(when, &room));
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
    struct itimerspec room;
    NEXT(timerfd_settime, "GLIBC_2.8");
    if (!(flags & TFD_TIMER_ABSTIME) || new == NULL) return other(fd, flags, new, old);
    room.it_interval = new->it_interval;
    room.it_value = *real(&new->it_value, &room.it_value);
    return other(fd, flags, &room, old);
}
