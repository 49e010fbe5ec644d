/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Finding good values, and proving them.
 *
 * The proof of one offering is a knapsack: the worthiest set of pods that fits it. It is searched
 * with a limit on steps; a branch that is not searched counts with its upper bound, so the result
 * is never too low and the certificate holds either way. That upper bound comes from one surrogate
 * constraint (a weighted sum of the resources), with needs rounded down.
 *
 * The values start as the cheapest share of a node and are then moved, class by class: down where a
 * worthiest set holds the class and is worth more than its price, up where no set needs it. The
 * best proven values are kept. */

#include "provisioner/solve/bound.h"

#include "base/bits.h"
#include "base/num.h"

#define SCALE INT64_C(1000000000)
#define PPM INT64_C(1000000)
#define ROUNDS_MAX 60
#define STEPS_PER_OFFER 3000

struct bound_class {
    const struct podset *class_;
    int64_t pods;   /* launched for */
    int64_t most;   /* on one node, by count and hostname rules */
    int64_t value;  /* nano-dollars per hour */
    int64_t proven; /* the best so far */
    int64_t tight;  /* worst worth / price of a worthiest set that holds it, in ppm; 0 none does */
    int32_t weight; /* of the lightest pool it was launched in */
};

struct entry {
    uint32_t class_;
    int64_t share, value, most;
    int64_t count, best; /* while searching */
};

struct bound {
    struct problem *p;
    struct bound_class *classes;
    uint32_t n_classes;
    uint32_t *of_class; /* world class to index here; WORLD_NONE */
    uint64_t **allowed; /* per choice: bit per class here */
    int64_t *worst;     /* per choice: proven worth of the worthiest set */
    struct entry *entries;
    int64_t work;
};

/* ---- Knapsack ---- */

struct search {
    const struct bound *b;
    struct entry *v;
    uint32_t n;
    int64_t *room;
    int64_t best, steps;
};

/* x / y by density, exactly. */
static int denser_first(const void *x, const void *y)
{
    const struct entry *p = x, *q = y;
    __int128 a = (__int128)p->value * q->share, b = (__int128)q->value * p->share;
    if (a != b)
        return a > b ? -1 : 1;
    return p->class_ < q->class_ ? -1 : p->class_ > q->class_;
}

/* The most that entries from `at` can add in `left` of the surrogate, fractions allowed, rounded
 * up. */
static int64_t ceiling(const struct search *s, uint32_t at, int64_t left)
{
    int64_t sum = 0;
    for (uint32_t i = at; i < s->n && left > 0; i++) {
        const struct entry *e = &s->v[i];
        int64_t whole = MIN(e->most, left / e->share);
        sum = num_add_sat(sum, num_mul_sat(whole, e->value));
        left -= whole * e->share;
        if (whole < e->most) /* what is left is below one share */
            return num_add_sat(sum, num_mul_div_up(e->value, left, e->share));
    }
    return sum;
}

/* Upper bound on what the branch can reach; exact unless steps ran out. */
static int64_t explore(struct search *s, uint32_t at, int64_t left, int64_t worth)
{
    if (worth > s->best) {
        s->best = worth;
        for (uint32_t i = 0; i < s->n; i++)
            s->v[i].best = i < at ? s->v[i].count : 0;
    }
    if (at == s->n)
        return worth;
    int64_t top = num_add_sat(worth, ceiling(s, at, left));
    if (top <= s->best)
        return worth;
    if (--s->steps < 0)
        return top;
    struct entry *e = &s->v[at];
    const int64_t *need = s->b->classes[e->class_].class_->requests;
    uint32_t n = s->b->p->w->resources.n;
    int64_t most = resources_copies(need, s->room, n, MIN(e->most, left / e->share));
    int64_t reach = worth;
    for (int64_t y = most; y >= 0; y--) {
        for (uint32_t r = 0; r < n; r++)
            s->room[r] -= need[r] * y;
        e->count = y;
        int64_t got = explore(s, at + 1, left - y * e->share, worth + y * e->value);
        reach = MAX(reach, got);
        for (uint32_t r = 0; r < n; r++)
            s->room[r] += need[r] * y;
        if (s->steps < 0 && y > 0) {
            /* Fewer copies were not searched: they count with the bound of this branch. */
            reach = MAX(reach, top);
            break;
        }
    }
    e->count = 0;
    return reach;
}

/* Shares of `e` by the surrogate `only` (all resources alike when it is resources.n). Rounded down,
 * so that what fits the node fits the surrogate. */
static int64_t share_of(const struct bound *b, const int64_t *need, const int64_t *room,
                        uint32_t only)
{
    uint32_t n = b->p->w->resources.n;
    int64_t sum = 0;
    for (uint32_t r = 0; r < n; r++)
        if (need[r] > 0 && room[r] > 0 && (only == n || only == r))
            sum += num_mul_div(need[r], SCALE, room[r]);
    return sum;
}

static uint32_t fill_entries(struct bound *b, uint32_t choice, uint32_t only, bool *ret_unbounded)
{
    const struct choice *k = &b->p->choices[choice];
    uint32_t n = 0;
    *ret_unbounded = false;
    for (size_t c = bits_next(b->allowed[choice], BITS_WORDS(b->n_classes) + 1, 0); c != SIZE_MAX;
         c = bits_next(b->allowed[choice], BITS_WORDS(b->n_classes) + 1, c + 1)) {
        const struct bound_class *x = &b->classes[c];
        if (x->value <= 0)
            continue;
        int64_t share = share_of(b, x->class_->requests, k->room, only);
        if (share == 0)
            *ret_unbounded = true; /* by this surrogate; another one binds it */
        int64_t most =
            resources_copies(x->class_->requests, k->room, b->p->w->resources.n, x->most);
        if (most > 0)
            b->entries[n++] = (struct entry){
                .class_ = (uint32_t)c, .share = MAX(share, 1), .value = x->value, .most = most};
    }
    if (n)
        qsort(b->entries, n, sizeof(*b->entries), denser_first);
    return n;
}

static int64_t surrogate_room(const struct bound *b, const int64_t *room, uint32_t only)
{
    uint32_t n = b->p->w->resources.n;
    if (only < n)
        return SCALE;
    int64_t sum = 0;
    for (uint32_t r = 0; r < n; r++)
        sum += room[r] > 0 ? SCALE : 0;
    return sum;
}

/* The proven worth of the worthiest set; its classes are in entries[].best afterwards. */
static int64_t worthiest(struct bound *b, uint32_t choice, uint32_t *ret_n)
{
    const int64_t *room = b->p->choices[choice].room;
    uint32_t n_resources = b->p->w->resources.n, best_of = n_resources;
    int64_t least = INT64_MAX, work_room[RESOURCES_MAX];
    bool unbounded;
    for (uint32_t only = 0; only <= n_resources; only++) {
        struct search s = {.b = b, .v = b->entries};
        s.n = fill_entries(b, choice, only, &unbounded);
        if (unbounded)
            continue;
        int64_t top = ceiling(&s, 0, surrogate_room(b, room, only));
        if (top < least) {
            least = top;
            best_of = only;
        }
    }
    struct search s = {.b = b, .v = b->entries, .room = work_room, .steps = STEPS_PER_OFFER};
    memcpy(work_room, room, n_resources * sizeof(*room));
    s.n = fill_entries(b, choice, best_of, &unbounded);
    *ret_n = s.n;
    b->work -= STEPS_PER_OFFER / 10;
    return explore(&s, 0, surrogate_room(b, room, best_of), 0);
}

/* ---- Rounds ---- */

static void take_note(struct bound *b, uint32_t choice, uint32_t n)
{
    int64_t price = num_mul_sat(b->p->choices[choice].price_uusd_h, 1000);
    int64_t ratio = num_mul_div(b->worst[choice], PPM, price);
    for (uint32_t i = 0; i < n; i++)
        if (b->entries[i].best > 0) {
            struct bound_class *c = &b->classes[b->entries[i].class_];
            c->tight = MAX(c->tight, ratio);
        }
}

/* Scales the values so that they hold, and keeps them if they prove more. */
static int64_t prove(struct bound *b, int64_t best)
{
    int64_t worst = 0, price = 1;
    for (uint32_t k = 0; k < b->p->n_choices; k++) {
        int64_t p = num_mul_sat(b->p->choices[k].price_uusd_h, 1000);
        if ((__int128)b->worst[k] * price > (__int128)worst * p) {
            worst = b->worst[k];
            price = p;
        }
    }
    int64_t sum = 0;
    for (uint32_t c = 0; c < b->n_classes; c++) {
        struct bound_class *x = &b->classes[c];
        int64_t v = worst > price ? num_mul_div(x->value, price, worst) : x->value;
        sum = num_add_sat(sum, num_mul_sat(v, x->pods));
    }
    if (sum <= best)
        return best;
    for (uint32_t c = 0; c < b->n_classes; c++)
        b->classes[c].proven =
            worst > price ? num_mul_div(b->classes[c].value, price, worst) : b->classes[c].value;
    return sum;
}

static void move_values(struct bound *b, int64_t step_ppm)
{
    for (uint32_t c = 0; c < b->n_classes; c++) {
        struct bound_class *x = &b->classes[c];
        int64_t target = x->tight ? num_mul_div(PPM, PPM, x->tight) : 2 * PPM;
        int64_t factor = PPM + num_mul_div(target - PPM, step_ppm, PPM);
        x->value = MAX(num_mul_div(x->value, factor, PPM), 1);
        x->tight = 0;
    }
}

static int64_t run_rounds(struct bound *b)
{
    int64_t best = 0, step = 500000;
    for (int round = 0; round < ROUNDS_MAX && (round == 0 || b->work > 0); round++) {
        for (uint32_t k = 0; k < b->p->n_choices; k++) {
            uint32_t n;
            b->worst[k] = worthiest(b, k, &n);
            take_note(b, k, n);
        }
        best = prove(b, best);
        move_values(b, step);
        step = MAX(step * 93 / 100, 10000);
    }
    return best;
}

/* ---- What was launched ---- */

static int64_t most_on_one_node(const struct problem *p, const struct podset *c, int64_t pods)
{
    int64_t most = c->n_ports ? MIN(pods, 1) : pods;
    for (uint32_t h = 0; h < p->n_hosts; h++) {
        if (!bits_get(c->matches, p->hosts[h]))
            continue;
        for (uint32_t k = 0; k < c->n_antis; k++)
            if (c->antis[k].group == p->hosts[h])
                most = MIN(most, 1);
    }
    return most;
}

static void count_launched(struct bound *b)
{
    struct problem *p = b->p;
    b->classes = ARENA_NEW_ARRAY(&p->arena, struct bound_class, p->w->n_classes + 1);
    b->of_class = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->w->n_classes + 1);
    memset(b->of_class, 0xff, p->w->n_classes * sizeof(*b->of_class));
    for (size_t i = 0; i < p->bins.len; i++) {
        const struct spot *s = &p->bins.v[i];
        for (uint32_t k = 0; k < s->n; k++) {
            const struct item *it = &p->items[s->v[k].item];
            uint32_t *at = &b->of_class[it->class_->id];
            int32_t weight = p->w->pools[s->pool].weight;
            if (*at == WORLD_NONE) {
                *at = b->n_classes++;
                b->classes[*at] = (struct bound_class){
                    .class_ = it->class_, .value = it->value_nusd_h / it->bundle, .weight = weight};
            }
            b->classes[*at].pods += s->v[k].bundles * it->bundle;
            b->classes[*at].weight = MIN(b->classes[*at].weight, weight);
        }
    }
    for (uint32_t c = 0; c < b->n_classes; c++)
        b->classes[c].most = most_on_one_node(p, b->classes[c].class_, b->classes[c].pods);
}

static void find_allowed(struct bound *b)
{
    struct problem *p = b->p;
    size_t words = BITS_WORDS(b->n_classes) + 1;
    b->allowed = ARENA_NEW_ARRAY(&p->arena, uint64_t *, p->n_choices + 1);
    for (uint32_t k = 0; k < p->n_choices; k++) {
        b->allowed[k] = ARENA_NEW_ARRAY(&p->arena, uint64_t, words);
        const struct choice *x = &p->choices[k];
        for (size_t i = bits_next(x->items, p->item_words, 0); i != SIZE_MAX;
             i = bits_next(x->items, p->item_words, i + 1)) {
            uint32_t at = b->of_class[p->items[i].class_->id];
            if (at != WORLD_NONE && p->w->pools[x->pool].weight >= b->classes[at].weight)
                bits_set(b->allowed[k], at);
        }
    }
}

static int by_id(const void *x, const void *y)
{
    const struct plan_class *p = x, *q = y;
    return p->id < q->id ? -1 : p->id > q->id;
}

/* The resource of which the launches are fullest, in a sentence. */
static const char *what_binds(const struct problem *p, struct arena *a)
{
    int64_t share[RESOURCES_MAX] = {0};
    uint32_t most = 0;
    if (p->bins.len == 0)
        return "nothing to launch";
    for (uint32_t r = 0; r < p->w->resources.n; r++) {
        int64_t room = 0, left = 0;
        for (size_t i = 0; i < p->bins.len; i++) {
            room = num_add_sat(room, MAX(p->choices[p->bins.v[i].kind].room[r], 0));
            left = num_add_sat(left, MAX(p->bins.v[i].room[r], 0));
        }
        share[r] = room ? num_mul_div(room - left, 1000, room) : 0;
        if (share[r] > share[most])
            most = r;
    }
    return arena_printf(a, "%s binds: %lld.%lld %% of what is launched is asked for",
                        p->w->resources.names[most], (long long)share[most] / 10,
                        (long long)share[most] % 10)
        .p;
}

void bound_plan(struct problem *p, struct plan *plan, int64_t work)
{
    struct bound b = {.p = p, .work = work * 4};
    plan->binding = what_binds(p, &plan->arena);
    count_launched(&b);
    find_allowed(&b);
    b.worst = ARENA_NEW_ARRAY(&p->arena, int64_t, p->n_choices + 1);
    b.entries = ARENA_NEW_ARRAY(&p->arena, struct entry, b.n_classes + 1);
    int64_t total = run_rounds(&b);
    plan->bound_uusd_h = MIN(total / 1000, plan->objective_uusd_h);
    struct plan_class *v = ARENA_NEW_ARRAY(&plan->arena, struct plan_class, b.n_classes + 1);
    for (uint32_t c = 0; c < b.n_classes; c++)
        v[c] = (struct plan_class){.id = b.classes[c].class_->id,
                                   .pods = (uint32_t)b.classes[c].pods,
                                   .example = b.classes[c].class_->example->key,
                                   .value_nusd_h = b.classes[c].proven};
    if (b.n_classes)
        qsort(v, b.n_classes, sizeof(*v), by_id);
    plan->classes = v;
    plan->n_classes = b.n_classes;
}
