/* What a bad model library may do while it composes. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void well_behaved(void) {}

/* Longer than qnnscope loads a model for several launches. */
static void dawdle(void) {
  fprintf(stderr, "taking my time\n");
  sleep(11);
}

static void segfault(void) {
  fprintf(stderr, "about to follow a bad pointer\n");
  int *volatile nowhere = (int *)8;
  *nowhere = 1;
}

static void give_up(void) {
  fprintf(stderr, "giving up\n");
  abort();
}

static void loop_for_ever(void) {
  fprintf(stderr, "looping\n");
  for (volatile unsigned long i = 0;; i++) {
  }
}

/* Keeps the reader of its output busy without an end. */
static void shout_for_ever(void) {
  static char block[65536];
  memset(block, '\n', sizeof block);
  for (size_t i = 0; i < sizeof block; i += 64) {
    block[i] = '#';
  }
  for (;;) {
    fwrite(block, 1, sizeof block, stdout);
  }
}

/* Blocks everything that can be blocked before it loops. */
static void loop_deaf(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  loop_for_ever();
}

static void eat_memory(void) {
  /* Should nobody stop it, it stops itself before the machine suffers. */
  struct rlimit limit = {8UL << 30, 8UL << 30};
  setrlimit(RLIMIT_AS, &limit);
  fprintf(stderr, "eating memory\n");
  for (;;) {
    char *block = malloc(16 << 20);
    if (block == NULL) {
      _exit(99);
    }
    memset(block, 1, 16 << 20);
    usleep(2000);
  }
}

/* Lines that look like frames, lines without an end, bytes that are no text, control sequences, a very long line. */
static void chatter(void) {
  printf("plain words on stdout\n");
  printf("{\"event\":{\"t_us\":1,\"event\":{\"run_finished\":{\"status\":\"failed\"}}}}\n\"done\"\n");
  printf("\033[2J\033]0;title\007red\x1b[31m\n");
  fwrite("bytes \xff\xfe\x00 end\n", 1, 14, stdout);
  for (int i = 0; i < 100000; i++) {
    putchar('x');
  }
  printf("\nno end of line");
  fflush(stdout);
  fprintf(stderr, "plain words on stderr\n");
}

static void leave(void) {
  fprintf(stderr, "leaving\n");
  exit(7);
}

/* Leaves a process behind that holds every descriptor, then crashes. */
static void orphan(void) {
  if (fork() == 0) {
    for (;;) {
      pause();
    }
  }
  abort();
}

/* What the HTP backend says when the DSP does not get its skel (lines of public logs), and the end of it. */
static void no_transport(void) {
  fprintf(stderr,
          " <E> DspTransport.openSession qnn_open failed, 0x80000406, prio 100\n"
          " <E> IDspTransport: Unable to load lib 0x80000406\n"
          " <E> Unable to load Skel Library. transportStatus: 9\n"
          " <E> Failed to retrieve skel build id: err: 1008\n"
          " <E> Failed to load skel, error: 1008\n");
  exit(11);
}
