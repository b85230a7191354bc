/* A stand-in for libcdsprpc.so: it answers as the FastRPC client of a healthy DSP would, so that the real HTP libraries for
 * Linux on aarch64 run to the end without a DSP. It computes nothing: outputs stay unchanged.
 *
 * STAND_IN_BUILD  the build id that the "skel" claims
 * STAND_IN_ARCH   the Hexagon architecture that the "DSP" claims, hexadecimal, such as 79
 * STAND_IN_FAILS  what fails, separated by commas: `what=answer`, or `what@n=answer` from the n-th call on (1 is the first):
 *                   open=CODE        remote_handle64_open returns CODE
 *                   session14=CODE   remote_session_control returns CODE for this request
 *                   unsigned=0       the DSP offers no unsigned protection domain
 *                   method7=CODE     remote_handle64_invoke of this method returns CODE; `crash` ends the process, `hang` never returns,
 *                                    `killed` waits like a hanging call until the process is killed
 *                   command40=CODE   the status of this command (method 4)
 *                   rpcmem=BYTES     blocks of BYTES or more cannot be allocated
 *                   map=CODE         fastrpc_mmap returns CODE
 *                   queue=CODE       dspqueue_create returns CODE
 * STAND_IN_TIMES  accelerator time, VTCM wait and power-up time of an inference in microseconds, separated by commas, and
 *                   optionally the inference (1 is the first) from which the accelerator takes twice as long
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS = 512, CDSP = 3 };

static struct block {
  void *at;
  size_t bytes;
  int fd;
} blocks[BLOCKS];

/* Counts the call and yields the answer to fail with; false if it succeeds. */
static int fails(const char *what, char answer[32]) {
  static struct counter {
    char what[24];
    long calls;
  } counters[64];
  const char *list = getenv("STAND_IN_FAILS");
  if (list == NULL || *list == 0) {
    return 0;
  }
  struct counter *counter = counters;
  while (counter->what[0] != 0 && strcmp(counter->what, what) != 0) {
    counter++;
  }
  snprintf(counter->what, sizeof counter->what, "%s", what);
  counter->calls++;
  size_t length = strlen(what);
  for (const char *item = list; item != NULL; item = strchr(item, ',')) {
    item += *item == ',';
    long from = 1;
    if (strncmp(item, what, length) != 0) {
      continue;
    }
    const char *rest = item + length;
    if (*rest == '@') {
      from = strtol(rest + 1, (char **)&rest, 10);
    }
    if (*rest != '=' || counter->calls < from) {
      continue;
    }
    size_t count = strcspn(rest + 1, ",");
    snprintf(answer, 32, "%.*s", (int)count, rest + 1);
    return 1;
  }
  return 0;
}

static int code_of(const char *answer) {
  return (int)strtoul(answer, NULL, 0);
}

/* The code of a call that can fail in only one way. */
static int outcome(const char *what) {
  char answer[32];
  return fails(what, answer) ? code_of(answer) : 0;
}

/* Memory shared with the "DSP". */

void rpcmem_init(void) {}
void rpcmem_deinit(void) {}

void *rpcmem_alloc2(int heap, uint32_t flags, size_t bytes) {
  (void)heap, (void)flags;
  char answer[32];
  if (fails("rpcmem", answer) && bytes >= strtoul(answer, NULL, 0)) {
    return NULL;
  }
  int fd = memfd_create("rpcmem", 0);
  if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
    return NULL;
  }
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (int i = 0; at != MAP_FAILED && i < BLOCKS; i++) {
    if (blocks[i].at == NULL) {
      blocks[i] = (struct block){at, bytes, fd};
      return at;
    }
  }
  return NULL;
}

void *rpcmem_alloc(int heap, uint32_t flags, int bytes) {
  return bytes < 0 ? NULL : rpcmem_alloc2(heap, flags, (size_t)bytes);
}

static struct block *block_at(const void *at) {
  for (int i = 0; i < BLOCKS; i++) {
    if (at != NULL && blocks[i].at == at) {
      return &blocks[i];
    }
  }
  return NULL;
}

void rpcmem_free(void *at) {
  struct block *block = block_at(at);
  if (block != NULL) {
    munmap(block->at, block->bytes);
    close(block->fd);
    memset(block, 0, sizeof *block);
  }
}

int rpcmem_to_fd(void *at) {
  struct block *block = block_at(at);
  return block == NULL ? -1 : block->fd;
}

int fastrpc_mmap(int domain, int fd, void *at, int offset, size_t bytes, int flags) {
  (void)domain, (void)fd, (void)at, (void)offset, (void)bytes, (void)flags;
  return outcome("map");
}

int fastrpc_munmap(int domain, int fd, void *at, size_t bytes) {
  (void)domain, (void)fd, (void)at, (void)bytes;
  return 0;
}

/* Sessions, and what the DSP reports about itself. */

int remote_session_control(uint32_t request, void *data, uint32_t bytes) {
  (void)bytes;
  char what[24], answer[32];
  snprintf(what, sizeof what, "session%u", request);
  if (fails(what, answer)) {
    return code_of(answer);
  }
  uint32_t *words = data;
  if (request == 14) {
    struct {
      char *domain;
      uint32_t length, session, effective;
    } *record = data;
    record->effective = CDSP + 8 * record->session;
  } else if (request == 13) {
    struct {
      char *domain;
      uint32_t domain_length, unused0;
      char *session;
      uint32_t session_length, effective, id;
    } *record = data;
    record->effective = CDSP;
    record->id = 0;
  } else if (request == 15) {
    struct {
      char *domain;
      uint32_t domain_length, session;
      char *module;
      uint32_t module_length, unused0;
      char *uri;
      uint32_t uri_length;
    } *record = data;
    snprintf(record->uri, record->uri_length, "%s&_dom=%s", record->module, record->domain);
  } else if (request == 10) {
    words[1] = 1;
  }
  return 0;
}

static uint32_t capability(uint32_t attribute) {
  const char *arch = getenv("STAND_IN_ARCH");
  char answer[32];
  switch (attribute) {
    case 1:
      return !fails("unsigned", answer);
    case 0:
    case 5:
    case 9:
    case 10:
      return 1;
    case 3:
      return 4;
    case 4:
      return 0x400000;
    case 6:
      return arch == NULL ? 0x79 : (uint32_t)strtoul(arch, NULL, 16);
    case 7:
    case 8:
      return 0x20;
    default:
      return 0;
  }
}

int remote_handle_control(uint32_t request, void *data, uint32_t bytes) {
  (void)bytes;
  uint32_t *words = data;
  if (request == 2) {
    words[2] = capability(words[1]);
  } else if (request == 4) {
    words[0] = 3;
  }
  return 0;
}

int remote_handle64_control(uint64_t handle, uint32_t request, void *data, uint32_t bytes) {
  (void)handle, (void)request, (void)data, (void)bytes;
  return 0;
}

int remote_system_request(void *request) {
  (void)request;
  return 0x14;
}

int remote_handle64_open(const char *name, uint64_t *handle) {
  (void)name;
  char answer[32];
  if (fails("open", answer)) {
    return code_of(answer);
  }
  *handle = 0x51;
  return 0;
}

int remote_handle64_close(uint64_t handle) {
  (void)handle;
  return 0;
}

int remote_handle_open(const char *name, uint32_t *handle) {
  uint64_t wide = 0;
  int code = remote_handle64_open(name, &wide);
  *handle = (uint32_t)wide;
  return code;
}

int remote_handle_close(uint32_t handle) {
  (void)handle;
  return 0;
}

/* Calls. */

typedef struct {
  uint8_t *at;
  uint64_t bytes;
} argument;

static uint32_t crc_more(uint32_t crc, const uint8_t *at, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i++) {
    crc ^= at[i];
    for (int bit = 0; bit < 8; bit++) {
      crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
  }
  return crc;
}

static uint32_t word_of(const argument *from, int at) {
  uint32_t word = 0;
  if (from->at != NULL && from->bytes >= (uint64_t)(at + 1) * 4) {
    memcpy(&word, from->at + at * 4, 4);
  }
  return word;
}

static void put_word(argument *to, int at, uint32_t word) {
  if (to->at != NULL && to->bytes >= (uint64_t)(at + 1) * 4) {
    memcpy(to->at + at * 4, &word, 4);
  }
}

static int fail(const char *what, int *code) {
  char answer[32];
  if (!fails(what, answer)) {
    return 0;
  }
  if (strcmp(answer, "crash") == 0) {
    abort();
  }
  while (strcmp(answer, "hang") == 0) {
    sleep(1);
  }
  if (strcmp(answer, "killed") == 0) {
    sleep(1);
    kill(getpid(), SIGKILL);
  }
  *code = code_of(answer);
  return 1;
}

/* Writes the times of an inference where the library looks for them: in the shared block that begins with its own length and
 * the number of its layout. */
static void put_times(void) {
  const char *text = getenv("STAND_IN_TIMES");
  unsigned long accelerator_us = 0, vtcm_us = 0, power_us = 0, slow_from = 0;
  static unsigned long inferences;
  if (text == NULL || sscanf(text, "%lu,%lu,%lu,%lu", &accelerator_us, &vtcm_us, &power_us, &slow_from) < 3) {
    return;
  }
  inferences++;
  if (slow_from > 0 && inferences >= slow_from) {
    accelerator_us *= 2;
  }
  usleep((useconds_t)(accelerator_us + vtcm_us + power_us));
  for (int i = 0; i < BLOCKS; i++) {
    uint32_t *words = blocks[i].at;
    if (words == NULL || blocks[i].bytes < 88 || words[0] > blocks[i].bytes || words[0] < 88 || words[1] != 19) {
      continue;
    }
    uint64_t *record = blocks[i].at;
    record[4] = accelerator_us + vtcm_us + power_us;
    record[5] = accelerator_us;
    record[6] = accelerator_us * 1000;
    record[8] = vtcm_us;
    record[9] = power_us;
  }
}

int remote_handle64_invoke(uint64_t handle, uint32_t scalars, argument *arguments) {
  (void)handle;
  static uint32_t next_address = 0xc0000000u;
  uint32_t method = (scalars >> 24) & 31, in_count = (scalars >> 16) & 255, out_count = (scalars >> 8) & 255;
  argument *outs = arguments + in_count;
  if (method == 31 && in_count > 0) {
    method = word_of(&arguments[0], 0);
  }
  char what[24];
  int code = 0;
  snprintf(what, sizeof what, "method%u", method);
  if (fail(what, &code)) {
    return code;
  }
  for (uint32_t i = 0; i < out_count && method != 4; i++) {
    if (outs[i].at != NULL) {
      memset(outs[i].at, 0, outs[i].bytes);
    }
  }
  if (method == 7) {
    put_times();
  }
  if (method == 4 && in_count > 1 && out_count > 0) {
    uint32_t command = word_of(&arguments[1], 1);
    int status = 0;
    snprintf(what, sizeof what, "command%u", command);
    fail(what, &status);
    put_word(&outs[0], 0, (uint32_t)status);
    argument *last = &outs[out_count - 1];
    const char *build = getenv("STAND_IN_BUILD");
    if ((command == 38 || command == 40) && last->bytes == 136 && build != NULL) {
      uint64_t length = strlen(build);
      memcpy(last->at, &length, sizeof length);
      memcpy(last->at + 8, build, length < 128 ? length : 128);
    }
  } else if (method == 9 && out_count > 0 && word_of(&outs[0], 1) == 0) {
    put_word(&outs[0], 1, next_address);
    next_address += 0x400000;
  }
  if (out_count > 0 && outs[0].bytes >= 4) {
    uint32_t crc = 0xffffffffu;
    if (out_count == 2) {
      crc = crc_more(crc, outs[1].at, outs[1].bytes);
    }
    crc = ~crc_more(crc, outs[0].at, outs[0].bytes - 4);
    memcpy(outs[0].at + outs[0].bytes - 4, &crc, 4);
  }
  return 0;
}

int remote_handle_invoke(uint32_t handle, uint32_t scalars, argument *arguments) {
  return remote_handle64_invoke(handle, scalars, arguments);
}

/* Symbols that stubs link against and healthy runs never call. */

void remote_register_buf(void *at, int bytes, int fd) { (void)at, (void)bytes, (void)fd; }
void remote_register_buf_attr(void *at, int bytes, int fd, int attr) { (void)at, (void)bytes, (void)fd, (void)attr; }
int remote_register_fd(int fd, int bytes) { return (void)fd, (void)bytes, 0; }
int remote_register_dma_handle(int fd, uint32_t bytes) { return (void)fd, (void)bytes, 0; }
int remote_register_dma_handle_attr(int fd, uint32_t bytes, uint32_t attr) { return (void)fd, (void)bytes, (void)attr, 0; }
int remote_set_mode(uint32_t mode) { return (void)mode, 0; }
int remote_mem_map(void) { return 0; }
int remote_mem_unmap(void) { return 0; }
int remote_mmap64(void) { return 0; }
int remote_munmap64(void) { return 0; }
int fastrpc_async_get_status(void) { return 0; }
int fastrpc_release_async_job(void) { return 0; }

/* Queues are created and accept messages that nobody answers: QAIRT 2.51 creates one but sends its calls past it. */

int dspqueue_create(int domain, uint32_t flags, uint32_t requests, uint32_t answers, void *packets, void *errors,
                    void *context, void **queue) {
  (void)domain, (void)flags, (void)requests, (void)answers, (void)packets, (void)errors, (void)context;
  static int made;
  int code = outcome("queue");
  if (code == 0) {
    *queue = &made;
  }
  return code;
}

int dspqueue_export(void *queue, uint64_t *id) {
  (void)queue;
  *id = 1;
  return 0;
}

int dspqueue_close(void *queue) { return (void)queue, 0; }
int dspqueue_write(void) { return 0; }
int dspqueue_write_noblock(void) { return 0; }
int dspqueue_read(void) { return outcome("queue-read"); }
int dspqueue_read_noblock(void) { return 0x204; }
