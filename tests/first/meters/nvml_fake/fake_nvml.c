/* A libnvidia-ml.so.1 without hardware: power is a known function of time, so every joule has an exact value to be held against.

   All settings come from the environment variable FAKE_NVML as `key=value` pairs between blanks; `key.2=value` is for GPU 2 only. Values
   hold no blank: an underscore in `name` stands for one. Times `..._at_s` count from the loading of the library.

     gpus=1 name=NVIDIA_H200 arch=9 driver=590.48.01 mib=143771 uuid=...
     high_w=600 low_w=120 period_s=2 duty=0.5 phase_s=0 phase_step_s=0        square wave; period_s=0: constant high_w
     tick_ms=100 tick_phase_ms=0 tick_step_ms=0 jitter_ms=0                   when the energy counter is renewed
     lag_ms=0                                                                 the energy counter shows what had been counted so long before
     load_file=path                                                           power from a file instead: each line a monotonic instant in ns
                                                                              and the share of high_w - low_w from then on; read as it grows
     power_tick_ms=100 looks_ms=25                                            instant power: mean of the last looks_ms at the last tick
     offset_mj=123456789 energy=0|code memory_share=0.15                      code: NVML error instead of the energy counter
     deny=186:2,185:1 later=186:0 later_at_s=-1                               field:scope pairs that are not supported, or not any more
     deny_code=3 fields=0|code usage=0|code utilisation=0|code memory=0|code  codes instead of whole calls
     module_w=0 c2c=0 scopeless=0 same_energy=0                               module_w > 0: module scope, and energy is the module's
     module_of=-1                                                             this GPU shows the module of that one
     mig=0                                                                    number of MIG instances
     init=0|code handle=0|code
     lost_at_s back_at_s lost_code=15 reset_at_s reload_at_s reload_until_s   -1: never
     zero_w=0 frozen=0                                                        1: power reads 0; the energy counter stands still
     latency_us=0                                                             busy wait in every call
     flaky=0                                                                  every n-th energy call times out (10)

   fake_exact_mj(gpu, monotonic_ns) is the integral of the power since loading; fake_calls(name) counts calls. With FAKE_NVML_CALLS=path
   the counts are written there when the process ends. fake_at(s) stops the clock at s seconds after loading, or lets it run again when s is
   negative. A handle from before a loss or a reload is not good afterwards. fake_reborn() reads the settings again as if the library had just been loaded. */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6, INSUFFICIENT_SIZE, DRIVER_NOT_LOADED = 9, LOST = 15 };
enum { MOST_GPUS = 16, MOST_SLICES = 8 };

typedef struct Gpu {
    int index, slice; /* slice -1: the card itself */
    struct Gpu *parent;
    char uuid[96], name[96], deny[256], later[64];
    double high_w, low_w, period_s, duty, phase_s, tick_s, tick_phase_s, jitter_s, lag_s, power_tick_s, looks_s, memory_share, module_w;
    double lost_at_s, back_at_s, reset_at_s, offset_mj, later_at_s;
    int arch, energy, fields, usage, utilisation, memory, deny_code, c2c, scopeless, module_of, mig, handle, lost_code, zero_w, frozen;
    int flaky, asked, same_energy, second;
    double mib;
} Gpu;

typedef union { double d; unsigned ui; unsigned long ul; unsigned long long ull; long long sll; } Value;
typedef struct { unsigned fieldId, scopeId; int64_t timestamp, latencyUsec; unsigned valueType, nvmlReturn; Value value; } FieldValue;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char busId[32]; } Pci;

static Gpu gpus[MOST_GPUS], again[MOST_GPUS], slices[MOST_GPUS][MOST_SLICES];
static int count, started, init_code;
static double born_s, reload_at_s, reload_until_s, latency_us;
static char driver[64];

enum { MOST_CHANGES = 1 << 20 };
static struct { double at_s, share, sum; } changes[MOST_CHANGES];
static int changed;
static FILE *load_file;

static struct { const char *name; unsigned long long n; } calls[128];

static unsigned long long *counted(const char *name) {
    for (int i = 0; i < 128; i++) {
        if (!calls[i].name) { calls[i].name = name; return &calls[i].n; }
        if (!strcmp(calls[i].name, name)) return &calls[i].n;
    }
    return &calls[127].n;
}

unsigned long long fake_calls(const char *name) { return *counted(strdup(name)); }

static double monotonic_s(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static double stopped_s = -1;
static double now_s(void) { return stopped_s >= 0 ? stopped_s : monotonic_s() - born_s; }
void fake_at(double s) { stopped_s = s; }

static const char *setting(const char *key, int gpu) {
    static char out[256];
    const char *all = getenv("FAKE_NVML");
    char own[64];
    const char *best = NULL;
    snprintf(own, sizeof own, "%s.%d", key, gpu);
    for (const char *p = all ? all : ""; *p;) {
        while (*p == ' ' || *p == '\n') p++;
        size_t n = strcspn(p, " \n");
        const char *eq = memchr(p, '=', n);
        if (eq) {
            size_t k = (size_t)(eq - p);
            int mine = k == strlen(own) && !strncmp(p, own, k);
            if (mine || (!best && k == strlen(key) && !strncmp(p, key, k))) {
                snprintf(out, sizeof out, "%.*s", (int)(n - k - 1), eq + 1);
                best = out;
                if (mine) return best;
            }
        }
        p += n;
    }
    return best;
}

static double number(const char *key, int gpu, double usual) { const char *s = setting(key, gpu); return s ? atof(s) : usual; }

static void written(void) {
    const char *path = getenv("FAKE_NVML_CALLS");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    for (int i = 0; i < 128 && calls[i].name; i++) fprintf(f, "%s %llu\n", calls[i].name, calls[i].n);
    fclose(f);
}

__attribute__((constructor)) static void born(void) {
    born_s = monotonic_s();
    stopped_s = -1;
    started = 0;
    memset(gpus, 0, sizeof gpus);
    memset(calls, 0, sizeof calls);
    count = (int)number("gpus", -1, 1);
    if (count > MOST_GPUS) count = MOST_GPUS;
    init_code = (int)number("init", -1, 0);
    latency_us = number("latency_us", -1, 0);
    const char *path = setting("load_file", -1);
    if (load_file) fclose(load_file);
    load_file = path ? fopen(path, "r") : NULL;
    changed = 0;
    reload_at_s = number("reload_at_s", -1, -1);
    reload_until_s = number("reload_until_s", -1, reload_at_s);
    const char *d = setting("driver", -1);
    snprintf(driver, sizeof driver, "%s", d ? d : "590.48.01");
    for (int i = 0; i < count; i++) {
        Gpu *g = &gpus[i];
        g->index = i; g->slice = -1; g->parent = g;
        const char *s = setting("uuid", i);
        if (s) snprintf(g->uuid, sizeof g->uuid, "%s", s);
        else snprintf(g->uuid, sizeof g->uuid, "GPU-%08x-fa4e-fa4e-fa4e-%012x", 0xa0000000u + (unsigned)i * 0x01111111u, i);
        s = setting("name", i);
        snprintf(g->name, sizeof g->name, "%s", s ? s : "NVIDIA_H200");
        for (char *c = g->name; *c; c++) if (*c == '_') *c = ' ';
        s = setting("deny", i);
        snprintf(g->deny, sizeof g->deny, ",%s,", s ? s : "186:2,186:1,185:1"); /* what H100 and H200 deny */
        g->arch = (int)number("arch", i, 9); g->mib = number("mib", i, 143771);
        g->high_w = number("high_w", i, 600); g->low_w = number("low_w", i, 120); g->period_s = number("period_s", i, 2);
        g->duty = number("duty", i, 0.5); g->phase_s = number("phase_s", i, 0) + i * number("phase_step_s", i, 0);
        g->tick_s = number("tick_ms", i, 100) / 1e3;
        g->tick_phase_s = (number("tick_phase_ms", i, 0) + i * number("tick_step_ms", i, 0)) / 1e3;
        g->jitter_s = number("jitter_ms", i, 0) / 1e3; g->lag_s = number("lag_ms", i, 0) / 1e3; g->power_tick_s = number("power_tick_ms", i, 100) / 1e3;
        g->looks_s = number("looks_ms", i, 25) / 1e3; g->memory_share = number("memory_share", i, 0.15);
        g->module_w = number("module_w", i, 0); g->module_of = (int)number("module_of", i, -1);
        g->lost_at_s = number("lost_at_s", i, -1); g->back_at_s = number("back_at_s", i, -1); g->reset_at_s = number("reset_at_s", i, -1);
        g->offset_mj = number("offset_mj", i, 123456789); g->energy = (int)number("energy", i, 0); g->fields = (int)number("fields", i, 0);
        g->usage = (int)number("usage", i, 0); g->utilisation = (int)number("utilisation", i, 0); g->memory = (int)number("memory", i, 0);
        g->deny_code = (int)number("deny_code", i, NOT_SUPPORTED); g->c2c = (int)number("c2c", i, 0);
        g->scopeless = (int)number("scopeless", i, 0); g->mig = (int)number("mig", i, 0); g->handle = (int)number("handle", i, 0);
        g->lost_code = (int)number("lost_code", i, LOST); g->zero_w = (int)number("zero_w", i, 0); g->frozen = (int)number("frozen", i, 0);
        s = setting("later", i);
        snprintf(g->later, sizeof g->later, ",%s,", s ? s : "");
        g->later_at_s = number("later_at_s", i, 1e18); g->same_energy = (int)number("same_energy", i, 0);
        g->flaky = (int)number("flaky", i, 0);
        again[i] = *g;
        again[i].parent = &again[i]; again[i].second = 1;
        for (int k = 0; k < g->mig && k < MOST_SLICES; k++) {
            slices[i][k] = *g;
            slices[i][k].slice = k; slices[i][k].parent = g;
            snprintf(slices[i][k].uuid, sizeof g->uuid, "MIG-%08x-516c-516c-516c-%012x", 0xb0000000u + (unsigned)(i * 16 + k), k);
            snprintf(slices[i][k].name, sizeof g->name, "%.60s MIG 1g.18gb", g->name);
        }
    }
    static int asked;
    if (!asked++) atexit(written);
}
void fake_reborn(void) { born(); }

/* a load that somebody else makes and writes down: its changes, and its integral up to each */
static void read_load(void) {
    long long ns; double share;
    for (;;) {
        long at = ftell(load_file);
        if (fscanf(load_file, "%lld %lf", &ns, &share) != 2 || fgetc(load_file) != '\n') { fseek(load_file, at, SEEK_SET); clearerr(load_file); return; }
        if (changed >= MOST_CHANGES) return;
        double t = (double)ns * 1e-9 - born_s;
        changes[changed].at_s = t; changes[changed].share = share;
        changes[changed].sum = changed ? changes[changed - 1].sum + changes[changed - 1].share * (t - changes[changed - 1].at_s) : 0;
        changed++;
    }
}
static double load_area(double t) { /* share times seconds, from the first change on */
    read_load();
    int low = 0, high = changed;
    while (low < high) { int middle = (low + high) / 2; if (changes[middle].at_s <= t) low = middle + 1; else high = middle; }
    return low ? changes[low - 1].sum + changes[low - 1].share * (t - changes[low - 1].at_s) : 0;
}

/* the power and its exact integral */
static double area_j(const Gpu *g, double x) { /* of the wave, from 0 to x >= 0 */
    if (g->period_s <= 0) return g->high_w * x;
    double whole = floor(x / g->period_s), rest = x - whole * g->period_s, up = g->duty * g->period_s;
    double high = whole * up + (rest < up ? rest : up);
    return g->low_w * x + (g->high_w - g->low_w) * high;
}
static double energy_j(const Gpu *g, double t) {
    if (load_file) return g->low_w * (t + 1000) + (g->high_w - g->low_w) * load_area(t);
    double p = g->phase_s + 1000 * (g->period_s > 0 ? g->period_s : 1); return area_j(g, p + t) - area_j(g, p);
}
static double mean_w(const Gpu *g, double t, double window) { return (energy_j(g, t) - energy_j(g, t - window)) / window; }

static double scattered(const Gpu *g, long k) { /* -0.5 .. 0.5, the same for the same tick */
    uint64_t h = (uint64_t)(k * 2654435761u + g->index * 40503u + 12345u);
    h ^= h >> 13; h *= 0x9E3779B97F4A7C15ull; h ^= h >> 29;
    return (double)(h % 1000003u) / 1000003.0 - 0.5;
}
static double last_tick(const Gpu *g, double t) {
    long k = (long)floor((t - g->tick_phase_s) / g->tick_s) + 1;
    for (;; k--) { double at = g->tick_phase_s + k * g->tick_s + g->jitter_s * scattered(g, k); if (at <= t) return at; }
}
static unsigned long long counter_mj(const Gpu *g, double t) {
    double at = last_tick(g, g->frozen ? 0.0 : t), mj = g->offset_mj + energy_j(g, at - g->lag_s) * 1e3, since = -1;
    if (g->reset_at_s >= 0 && t >= g->reset_at_s) since = g->reset_at_s;
    if (reload_at_s >= 0 && t >= reload_until_s && reload_until_s > since) since = reload_until_s;
    if (since >= 0) mj = at > since ? (energy_j(g, at) - energy_j(g, since)) * 1e3 : 0;
    if (g->module_w > 0) mj += g->module_w * (at - (since >= 0 ? since : 0)) * 1e3;
    return mj > 0 ? (unsigned long long)mj : 0;
}
double fake_exact_mj(int index, int64_t t_ns) { Gpu *g = &gpus[index]; double t = (double)t_ns * 1e-9 - born_s; return (energy_j(g, t) + g->module_w * t) * 1e3; }
double fake_exact_gpu_mj(int index, int64_t t_ns) { return energy_j(&gpus[index], (double)t_ns * 1e-9 - born_s) * 1e3; }
int64_t fake_born_ns(void) { return (int64_t)(born_s * 1e9); }

/* the calls */
static int entered(const char *name) {
    ++*counted(name);
    double t = now_s();
    if (latency_us > 0) for (double until = monotonic_s() + latency_us * 1e-6; monotonic_s() < until;) {}
    if (reload_at_s >= 0 && t >= reload_at_s) {
        if (t < reload_until_s) { started = 0; return DRIVER_NOT_LOADED; }
        if (started == 1) started = 0;
    }
    return started ? OK : UNINITIALIZED;
}
static int later_life(const Gpu *g, double t) { /* whether this GPU was away and is back */
    int left = g->lost_at_s >= 0 && g->back_at_s >= 0 && t >= g->back_at_s && (g->lost_code >= LOST && g->lost_code != 999 && g->lost_code != 21);
    return left || (reload_at_s >= 0 && t >= reload_until_s);
}
static int alive(const char *name, Gpu *g) {
    int code = entered(name);
    if (code) return code;
    if (!g) return INVALID_ARGUMENT;
    double t = now_s();
    if (g->parent->lost_at_s >= 0 && t >= g->parent->lost_at_s && (g->parent->back_at_s < 0 || t < g->parent->back_at_s)) return g->parent->lost_code;
    if (g->slice < 0 && !g->second && later_life(g, t)) return INVALID_ARGUMENT;
    return OK;
}
#define ENTER() do { int c_ = entered(__func__); if (c_) return c_; } while (0)
#define ALIVE(g) do { int c_ = alive(__func__, g); if (c_) return c_; } while (0)
#define CARD(g) do { ALIVE(g); if ((g)->slice >= 0) return NOT_SUPPORTED; } while (0)

static int text(char *out, unsigned size, const char *s) { if (strlen(s) + 1 > size) return INSUFFICIENT_SIZE; strcpy(out, s); return OK; }

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    ++*counted(__func__);
    if (init_code) return init_code;
    double t = now_s();
    if (reload_at_s >= 0 && t >= reload_at_s && t < reload_until_s) return DRIVER_NOT_LOADED;
    started = reload_at_s >= 0 && t >= reload_until_s ? 2 : 1; /* 2: started after the reload */
    return OK;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { ++*counted(__func__); if (!started) return UNINITIALIZED; started = 0; return OK; }
const char *nvmlErrorString(int code) {
    switch (code) { case 0: return "Success"; case 1: return "Uninitialized"; case 3: return "Not Supported"; case 9: return "Driver Not Loaded";
        case 15: return "GPU is lost"; default: return "Unknown Error"; }
}
int nvmlSystemGetDriverVersion(char *out, unsigned size) { ENTER(); return text(out, size, driver); }
int nvmlSystemGetNVMLVersion(char *out, unsigned size) { ENTER(); return text(out, size, "13.590.48.01"); }
int nvmlSystemGetCudaDriverVersion(int *v) { ENTER(); *v = 13010; return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *v) { ENTER(); *v = 13010; return OK; }
int nvmlDeviceGetCount_v2(unsigned *n) { ENTER(); *n = (unsigned)count; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, Gpu **g) {
    ENTER();
    if (i >= (unsigned)count) return INVALID_ARGUMENT;
    if (gpus[i].handle) return gpus[i].handle;
    *g = &gpus[i];
    return alive("nvmlDeviceGetHandleByIndex_v2:alive", *g);
}
int nvmlDeviceGetHandleByUUID(const char *uuid, Gpu **g) {
    ENTER();
    for (int i = 0; i < count; i++) {
        if (!strcmp(gpus[i].uuid, uuid)) { *g = later_life(&gpus[i], now_s()) ? &again[i] : &gpus[i]; return alive("nvmlDeviceGetHandleByUUID:alive", *g); }
        for (int k = 0; k < gpus[i].mig; k++) if (!strcmp(slices[i][k].uuid, uuid)) { *g = &slices[i][k]; return OK; }
    }
    return NOT_FOUND;
}
int nvmlDeviceGetIndex(Gpu *g, unsigned *i) { ALIVE(g); *i = (unsigned)g->index; return OK; }
int nvmlDeviceGetUUID(Gpu *g, char *out, unsigned size) { ALIVE(g); return text(out, size, g->uuid); }
int nvmlDeviceGetName(Gpu *g, char *out, unsigned size) { ALIVE(g); return text(out, size, g->name); }
int nvmlDeviceGetArchitecture(Gpu *g, unsigned *a) { ALIVE(g); *a = (unsigned)g->arch; return OK; }
int nvmlDeviceGetC2cModeInfoV(Gpu *g, unsigned *on) { CARD(g); if (!g->c2c) return NOT_SUPPORTED; *on = 1; return OK; }
int nvmlDeviceGetMinorNumber(Gpu *g, unsigned *n) { ALIVE(g); *n = (unsigned)g->index; return OK; }
int nvmlDeviceGetPciInfo_v3(Gpu *g, Pci *p) {
    ALIVE(g);
    memset(p, 0, sizeof *p);
    p->bus = 0x10u + (unsigned)g->index;
    snprintf(p->busId, sizeof p->busId, "00000000:%02X:00.0", p->bus);
    snprintf(p->legacy, sizeof p->legacy, "0000:%02X:00.0", p->bus);
    return OK;
}
int nvmlDeviceGetMigMode(Gpu *g, unsigned *now, unsigned *next) { CARD(g); *now = *next = g->mig > 0; return g->arch >= 7 ? OK : NOT_SUPPORTED; }
int nvmlDeviceGetMaxMigDeviceCount(Gpu *g, unsigned *n) { CARD(g); *n = g->mig ? 7 : 0; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(Gpu *g, unsigned i, Gpu **out) {
    CARD(g);
    if (i == 0 || i > (unsigned)g->mig) return NOT_FOUND; /* places need not be dense: the first is free here */
    *out = &slices[g->index][i - 1];
    return OK;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Gpu *g, Gpu **out) { ALIVE(g); *out = g->parent; return OK; }
int nvmlDeviceIsMigDeviceHandle(Gpu *g, unsigned *is) { ALIVE(g); *is = g->slice >= 0; return OK; }
int nvmlDeviceGetGpuInstanceId(Gpu *g, unsigned *id) { ALIVE(g); if (g->slice < 0) return NOT_SUPPORTED; *id = 7u + (unsigned)g->slice; return OK; }
int nvmlDeviceGetComputeInstanceId(Gpu *g, unsigned *id) { ALIVE(g); if (g->slice < 0) return NOT_SUPPORTED; *id = 0; return OK; }

static unsigned milliwatts(Gpu *g, unsigned field, unsigned scope, double t) {
    if (g->zero_w) return 0;
    if (scope == 1 && g->module_of >= 0) g = &gpus[g->module_of];
    double at = floor(t / g->power_tick_s) * g->power_tick_s, w = mean_w(g, at, field == 185 ? 1.0 : g->looks_s);
    if (scope == 2 && !g->scopeless) w *= g->memory_share;
    if (scope == 1 && !g->scopeless) w += g->module_w;
    return (unsigned)lround(w * 1e3);
}
int nvmlDeviceGetTotalEnergyConsumption(Gpu *g, unsigned long long *mj) {
    CARD(g);
    if (g->energy) return g->energy;
    if (g->flaky && ++g->asked % g->flaky == 0) return 10;
    *mj = counter_mj(g->module_of >= 0 ? &gpus[g->module_of] : g, now_s());
    return OK;
}
int nvmlDeviceGetPowerUsage(Gpu *g, unsigned *mw) { CARD(g); if (g->usage) return g->usage; *mw = milliwatts(g, g->arch >= 7 ? 185 : 186, 0, now_s()); return OK; }
int nvmlDeviceGetFieldValues(Gpu *g, int n, FieldValue *v) {
    CARD(g);
    if (g->fields) return g->fields;
    double t = now_s();
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    for (int i = 0; i < n; i++) {
        char pair[32];
        snprintf(pair, sizeof pair, ",%u:%u,", v[i].fieldId, v[i].scopeId);
        v[i].timestamp = wall.tv_sec * 1000000ll + wall.tv_nsec / 1000;
        v[i].latencyUsec = 1;
        v[i].nvmlReturn = OK;
        if (strstr(g->deny, pair) || (t >= g->later_at_s && strstr(g->later, pair))) { /* and what was there before stays there */
            v[i].nvmlReturn = (unsigned)g->deny_code; v[i].valueType = 1; v[i].value.ui = 987654;
        }
        else if (v[i].fieldId == 185 || v[i].fieldId == 186) { v[i].valueType = 1; v[i].value.ui = milliwatts(g, v[i].fieldId, v[i].scopeId, t); }
        else if (v[i].fieldId == 83 && !g->energy) { v[i].valueType = 3; v[i].value.ull = counter_mj(g, t); }
        else if (v[i].fieldId == 191 && v[i].scopeId == 0 && !g->energy) {
            v[i].valueType = 3;
            v[i].value.ull = g->same_energy ? counter_mj(g, t) : (unsigned long long)(g->offset_mj / (g->module_w > 0 ? 2 : 1) + energy_j(g, last_tick(g, t)) * 1e3);
        } else v[i].nvmlReturn = NOT_SUPPORTED;
    }
    return OK;
}
int nvmlDeviceGetUtilizationRates(Gpu *g, unsigned *both) { CARD(g); if (g->utilisation) return g->utilisation; both[0] = 87; both[1] = 45; return OK; }
int nvmlDeviceGetMemoryInfo(Gpu *g, unsigned long long *m) {
    ALIVE(g);
    if (g->memory) return g->memory;
    m[0] = (unsigned long long)(g->mib * 1048576.0); m[2] = m[0] / 4; m[1] = m[0] - m[2];
    return OK;
}
int nvmlDeviceGetMemoryInfo_v2(Gpu *g, void *at) {
    ALIVE(g);
    if (g->memory) return g->memory;
    unsigned long long *m = (unsigned long long *)at + 1; /* after the version and its padding: total, reserved, free, used */
    m[0] = (unsigned long long)(g->mib * 1048576.0); m[1] = 0; m[3] = m[0] / 4; m[2] = m[0] - m[3];
    return OK;
}

/* what other energy meters ask for besides */
int nvmlDeviceGetTemperature(Gpu *g, unsigned sensor, unsigned *c) { (void)sensor; CARD(g); *c = 55; return OK; }
int nvmlDeviceGetTemperatureV(Gpu *g, int *at) { CARD(g); at[2] = 55; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(Gpu *g, unsigned *mw) { CARD(g); *mw = 700000; return OK; }
int nvmlDeviceGetPowerManagementLimit(Gpu *g, unsigned *mw) { CARD(g); *mw = 700000; return OK; }
int nvmlDeviceGetPowerManagementDefaultLimit(Gpu *g, unsigned *mw) { CARD(g); *mw = 700000; return OK; }
int nvmlDeviceGetPowerManagementLimitConstraints(Gpu *g, unsigned *low, unsigned *high) { CARD(g); *low = 200000; *high = 700000; return OK; }
int nvmlDeviceGetPersistenceMode(Gpu *g, unsigned *on) { CARD(g); *on = 1; return OK; }
int nvmlDeviceGetComputeMode(Gpu *g, unsigned *mode) { CARD(g); *mode = 0; return OK; }
int nvmlDeviceGetComputeRunningProcesses_v3(Gpu *g, unsigned *n, void *out) { (void)out; ALIVE(g); *n = 0; return OK; }
int nvmlDeviceGetGraphicsRunningProcesses_v3(Gpu *g, unsigned *n, void *out) { (void)out; ALIVE(g); *n = 0; return OK; }
