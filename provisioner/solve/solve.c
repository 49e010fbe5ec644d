/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The ladder, from the first answer to the proof. */

#include "provisioner/solve/solve.h"

#include "provisioner/solve/bound.h"
#include "provisioner/solve/emit.h"

#define WORK_STANDARD 4000000
#define REDEAL_ROUNDS 2

static void attempt(struct problem *p, const struct world *w, const struct solve_options *o,
                    enum pack_aim aim, const struct cell_caps *caps)
{
    problem_init(p, w);
    p->caps = caps;
    p->work = o->work > 0 ? o->work : WORK_STANDARD;
    domains_split(p);
    problem_choices(p);
    pack_nodes(p);
    if (!o->no_launch) {
        pack_launch(p, aim);
        pack_followers(p);
        improve(p);
    }
}

static void run(struct problem *p, const struct world *w, const struct solve_options *o,
                enum pack_aim aim)
{
    struct cell_caps caps = {0};
    attempt(p, w, o, aim, &caps);
    bool left = domains_learn(p, &caps);
    for (int round = 0; left && round < REDEAL_ROUNDS; round++) {
        problem_release(p);
        attempt(p, w, o, aim, &caps);
        left = domains_learn(p, &caps);
    }
    if (left)
        prune(p);
    vec_release(&caps);
    p->caps = NULL;
}

static bool has_limits(const struct world *w)
{
    for (uint32_t i = 0; i < w->n_pools; i++) {
        if (w->pools[i].nodes_left != INT64_MAX)
            return true;
        for (uint32_t r = 0; r < w->resources.n; r++)
            if (w->pools[i].limit_left[r] != INT64_MAX)
                return true;
    }
    return false;
}

/* Where limits leave pods without a place, buying by price may have spent the limit on nodes that
 * hold little of it: then buying for the limit is tried, and the plan that places more wins. */
static void run_all(struct problem *best, const struct world *w, const struct solve_options *o)
{
    run(best, w, o, PACK_BY_PRICE);
    for (enum pack_aim aim = PACK_BY_NODES; aim <= PACK_BY_LIMITS && !o->no_launch; aim++) {
        if (pack_unplaced(best) == 0 || !has_limits(w))
            return;
        struct problem other;
        run(&other, w, o, aim);
        int64_t left = pack_unplaced(&other), least = pack_unplaced(best);
        if (left < least || (left == least && pack_price(&other) < pack_price(best))) {
            problem_release(best);
            *best = other;
        } else {
            problem_release(&other);
        }
    }
}

struct plan *solve(const struct world *w, const struct solve_options *o)
{
    static const struct solve_options standard;
    if (!o)
        o = &standard;
    unsigned alternatives =
        o->alternatives ? MIN(o->alternatives, PLAN_ALTERNATIVES_MAX) : PLAN_ALTERNATIVES_MAX;
    struct problem p;
    run_all(&p, w, o);
    struct plan *plan = emit_plan(&p, alternatives);
    if (!o->no_bound)
        bound_plan(&p, plan, o->work > 0 ? o->work : WORK_STANDARD);
    problem_release(&p);
    return plan;
}
