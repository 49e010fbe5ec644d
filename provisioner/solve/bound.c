/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Finding good values, and proving them.
 *
 * The proof of one offering is a knapsack: the worthiest set of pods that fits it. It is searched
 * with a limit on steps; a branch that is not searched counts with its upper bound, so the result
 * is never too low and the certificate holds either way. That upper bound comes from one surrogate
 * constraint (a weighted sum of the resources), with needs rounded down.
 *
 * The values are duals of the configuration linear program, into which each round lets the sets
 * that the proofs found. The best proven values are kept. */

#include "provisioner/solve/bound.h"

#include "base/bits.h"
#include "base/num.h"
#include "provisioner/solve/columns.h"

#define SCALE INT64_C(1000000000)
#define PPM INT64_C(1000000)
#define TUNE_TURNS 8
#define ROUNDS_MAX 400
#define STEPS_PER_OFFER 3000

struct bound_class {
    const struct podset *class_;
    int64_t pods;   /* launched for */
    int64_t most;   /* on one node, by count and hostname rules */
    int64_t value;  /* nano-dollars per hour */
    int64_t proven; /* the best so far */
    int32_t weight; /* of the lightest pool it was launched in */
};

struct entry {
    uint32_t class_;
    int64_t share, value, most;
    int64_t count, best; /* while searching */
    bool plenty;         /* at least as many as the node holds */
    bool useless;
};

struct bound {
    struct problem *p;
    struct bound_class *classes;
    uint32_t n_classes;
    uint32_t *of_class; /* world class to index here; WORLD_NONE */
    uint64_t **allowed; /* per choice: bit per class here */
    int64_t *worst;     /* per choice: proven worth of the worthiest set */
    struct entry *entries;
    int64_t *weights; /* per choice and resource, ppm: of the surrogate */
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
        int64_t whole = e->share > 0 ? MIN(e->most, left / e->share) : e->most;
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
    int64_t most =
        resources_copies(need, s->room, n, e->share > 0 ? MIN(e->most, left / e->share) : e->most);
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

/* Share of the surrogate that one pod takes, rounded down so that what fits the node fits the
 * surrogate. Weights are per resource, in ppm. */
static int64_t share_of(const struct bound *b, const int64_t *need, const int64_t *room,
                        const int64_t *weights)
{
    int64_t sum = 0;
    for (uint32_t r = 0; r < b->p->w->resources.n; r++)
        if (need[r] > 0 && room[r] > 0)
            sum += num_mul_div(num_mul_div(need[r], SCALE, room[r]), weights[r], PPM);
    return sum;
}

static int64_t surrogate_room(const struct bound *b, const int64_t *room, const int64_t *weights)
{
    int64_t sum = 0;
    for (uint32_t r = 0; r < b->p->w->resources.n; r++)
        if (room[r] > 0)
            sum += num_mul_div_up(SCALE, weights[r], PPM);
    return sum;
}

/* Whether y can stand in for x on this node: needs no more of anything, is worth no less, and there
 * are as many as the node holds of x. */
static bool stands_in(const struct bound *b, const struct entry *y, const struct entry *x)
{
    const int64_t *p = b->classes[y->class_].class_->requests,
                  *q = b->classes[x->class_].class_->requests;
    if (y->value < x->value || (y->value == x->value && y->class_ > x->class_))
        return false;
    for (uint32_t r = 0; r < b->p->w->resources.n; r++)
        if (p[r] > q[r])
            return false;
    return true;
}

static uint32_t list_entries(struct bound *b, uint32_t choice)
{
    const struct choice *k = &b->p->choices[choice];
    size_t words = BITS_WORDS(b->n_classes) + 1;
    uint32_t n = 0;
    for (size_t c = bits_next(b->allowed[choice], words, 0); c != SIZE_MAX;
         c = bits_next(b->allowed[choice], words, c + 1)) {
        const struct bound_class *x = &b->classes[c];
        if (x->value <= 0)
            continue;
        int64_t most =
            resources_copies(x->class_->requests, k->room, b->p->w->resources.n, INT64_MAX);
        if (most > 0)
            b->entries[n++] = (struct entry){.class_ = (uint32_t)c,
                                             .value = x->value,
                                             .most = MIN(most, x->most),
                                             .plenty = x->most >= most};
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool useless = false;
        for (uint32_t y = 0; y < n && !useless; y++)
            useless =
                y != i && b->entries[y].plenty && stands_in(b, &b->entries[y], &b->entries[i]);
        b->entries[i].useless = useless;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!b->entries[i].useless)
            b->entries[kept++] = b->entries[i];
    return kept;
}

static void weigh(struct search *s, const int64_t *weights, const int64_t *room)
{
    for (uint32_t i = 0; i < s->n; i++)
        s->v[i].share =
            share_of(s->b, s->b->classes[s->v[i].class_].class_->requests, room, weights);
    if (s->n)
        qsort(s->v, s->n, sizeof(*s->v), denser_first);
}

/* How full the relaxed filling is in each resource, in ppm. */
static void relaxed_use(const struct search *s, int64_t left, const int64_t *room, int64_t *ret)
{
    uint32_t n = s->b->p->w->resources.n;
    memset(ret, 0, n * sizeof(*ret));
    for (uint32_t i = 0; i < s->n && left > 0; i++) {
        const struct entry *e = &s->v[i];
        const int64_t *need = s->b->classes[e->class_].class_->requests;
        int64_t ppm = e->share > 0
                          ? MIN(num_mul_sat(e->most, PPM), num_mul_div(left, PPM, e->share))
                          : num_mul_sat(e->most, PPM);
        for (uint32_t r = 0; r < n; r++)
            if (room[r] > 0)
                ret[r] = num_add_sat(ret[r], num_mul_div(need[r], ppm, room[r]));
        left -= num_mul_div(e->share, ppm, PPM);
    }
}

/* Moves the choice's weights to where the relaxation is least, from where they were left last. */
static void tune(struct search *s, uint32_t choice)
{
    const struct bound *b = s->b;
    uint32_t n = b->p->w->resources.n;
    const int64_t *room = b->p->choices[choice].room;
    int64_t *keep = &b->weights[(size_t)choice * n], now[RESOURCES_MAX], use[RESOURCES_MAX],
            least = INT64_MAX;
    memcpy(now, keep, n * sizeof(*now));
    for (int turn = 0; turn < TUNE_TURNS; turn++) {
        weigh(s, now, room);
        int64_t left = surrogate_room(b, room, now), top = ceiling(s, 0, left);
        if (top < least) {
            least = top;
            memcpy(keep, now, n * sizeof(*now));
        }
        relaxed_use(s, left, room, use);
        for (uint32_t r = 0; r < n; r++) {
            int64_t factor = MAX(MIN(PPM + (use[r] - PPM) / (turn / 2 + 2), 3 * PPM), PPM / 3);
            now[r] = MAX(MIN(num_mul_div(now[r], factor, PPM), 100 * PPM), 100);
        }
    }
    weigh(s, keep, room);
}

/* The proven worth of the worthiest set; its classes are in entries[].best afterwards. */
static int64_t worthiest(struct bound *b, uint32_t choice, uint32_t *ret_n)
{
    const int64_t *room = b->p->choices[choice].room;
    uint32_t n = b->p->w->resources.n;
    int64_t work_room[RESOURCES_MAX];
    struct search s = {.b = b, .v = b->entries, .room = work_room, .steps = STEPS_PER_OFFER};
    s.n = list_entries(b, choice);
    *ret_n = s.n;
    tune(&s, choice);
    memcpy(work_room, room, n * sizeof(*room));
    int64_t worth = explore(&s, 0, surrogate_room(b, room, &b->weights[(size_t)choice * n]), 0);
    b->work -= STEPS_PER_OFFER - MAX(s.steps, 0) + (int64_t)s.n * TUNE_TURNS;
    return worth;
}

/* ---- Rounds ---- */

/* Scales the values so that they just hold, and keeps them if they prove more. */
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
        int64_t v = worst > 0 ? num_mul_div(x->value, price, worst) : x->value;
        sum = num_add_sat(sum, num_mul_sat(v, x->pods));
    }
    if (sum <= best)
        return best;
    for (uint32_t c = 0; c < b->n_classes; c++)
        b->classes[c].proven =
            worst > 0 ? num_mul_div(b->classes[c].value, price, worst) : b->classes[c].value;
    return sum;
}

/* One sweep at the present values: proves all offerings, and lets those columns in that lower the
 * cost of the linear program. False when none does. */
static bool sweep(struct bound *b, struct columns *lp, double *column, int64_t *best)
{
    size_t m = b->n_classes;
    double *found = xcalloc(b->p->n_choices * m + 1, sizeof(*found));
    for (uint32_t k = 0; k < b->p->n_choices; k++) {
        uint32_t n;
        b->worst[k] = worthiest(b, k, &n);
        for (uint32_t i = 0; i < n; i++)
            found[k * m + b->entries[i].class_] = (double)b->entries[i].best;
    }
    *best = prove(b, *best);
    bool any = false;
    for (uint32_t k = 0; k < b->p->n_choices; k++) {
        memcpy(column, &found[k * m], m * sizeof(*column));
        any = columns_enter(lp, column, (double)b->p->choices[k].price_uusd_h * 1000) || any;
    }
    free(found);
    columns_allow_surplus(lp);
    return any;
}

/* For each class the choice that holds it cheapest alone. */
static void begin_columns(struct bound *b, struct columns *lp)
{
    struct arena *a = &b->p->arena;
    double *copies = ARENA_NEW_ARRAY(a, double, b->n_classes),
           *price = ARENA_NEW_ARRAY(a, double, b->n_classes);
    double *demand = ARENA_NEW_ARRAY(a, double, b->n_classes);
    for (uint32_t c = 0; c < b->n_classes; c++) {
        const struct bound_class *x = &b->classes[c];
        copies[c] = 1;
        price[c] = 1e18;
        demand[c] = (double)x->pods;
        for (uint32_t k = 0; k < b->p->n_choices; k++) {
            if (!bits_get(b->allowed[k], c))
                continue;
            int64_t n = resources_copies(x->class_->requests, b->p->choices[k].room,
                                         b->p->w->resources.n, x->most);
            double each = (double)b->p->choices[k].price_uusd_h * 1000;
            if (n > 0 && each / (double)n < price[c] / copies[c]) {
                copies[c] = (double)n;
                price[c] = each;
            }
        }
    }
    columns_init(lp, a, b->n_classes, copies, price, demand);
}

/* The plan's own launches are columns too: the linear program then costs no more than the plan. */
static void enter_plan(struct bound *b, struct columns *lp, double *column)
{
    for (size_t i = 0; i < b->p->bins.len; i++) {
        const struct spot *s = &b->p->bins.v[i];
        memset(column, 0, b->n_classes * sizeof(*column));
        for (uint32_t k = 0; k < s->n; k++) {
            const struct item *it = &b->p->items[s->v[k].item];
            column[b->of_class[it->class_->id]] += (double)(s->v[k].bundles * it->bundle);
        }
        columns_enter(lp, column, (double)b->p->choices[s->kind].price_uusd_h * 1000);
    }
    columns_allow_surplus(lp);
}

/* Half way between the duals and the best proven values: duals alone swing widely (Wentges 1997).
 */
static void set_values(struct bound *b, const struct columns *lp, bool smooth)
{
    for (uint32_t c = 0; c < b->n_classes; c++) {
        struct bound_class *x = &b->classes[c];
        int64_t dual = lp->dual[c] > 0 ? (int64_t)MIN(lp->dual[c], 4e17) : 0;
        x->value = smooth ? (dual + x->proven) / 2 : dual;
    }
}

static int64_t run_rounds(struct bound *b)
{
    int64_t best = 0;
    struct columns lp;
    bool smooth = false;
    if (b->n_classes == 0)
        return 0;
    begin_columns(b, &lp);
    double *column = ARENA_NEW_ARRAY(&b->p->arena, double, b->n_classes);
    enter_plan(b, &lp, column);
    for (int round = 0; round < ROUNDS_MAX && (round == 0 || b->work > 0); round++) {
        set_values(b, &lp, smooth);
        bool entered = sweep(b, &lp, column, &best);
        if (!entered && !smooth)
            break;
        smooth = entered;
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
    size_t n_weights = (size_t)p->n_choices * p->w->resources.n;
    b.weights = ARENA_NEW_ARRAY(&p->arena, int64_t, n_weights + 1);
    for (size_t i = 0; i < n_weights; i++)
        b.weights[i] = PPM;
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
