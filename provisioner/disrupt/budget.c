/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/disrupt/budget.h"

#include "base/cron.h"
#include "base/num.h"

bool budget_active(const struct disruption_budget *b, int64_t now, bool *ret_broken)
{
    struct cron cron;
    int64_t hit;

    *ret_broken = false;
    if (!b->schedule)
        return true;
    if (cron_parse(str_from(b->schedule), &cron, NULL) < 0) {
        *ret_broken = true;
        return false;
    }
    hit = cron_prev(&cron, NULL, now);
    return hit != INT64_MIN && now - hit < b->duration;
}

int64_t budget_nodes(const struct disruption_budget *b, int64_t nodes)
{
    struct str text = str_from(b->nodes);
    bool percent = str_has_suffix(text, STR("%"));
    int64_t n;

    if (percent)
        text.len--;
    if (num_parse_range(text, 0, percent ? 100 : INT32_MAX, &n, NULL) < 0)
        return 0;
    return percent ? num_mul_div_up(nodes, n, 100) : n;
}

int64_t budget_allowed(const struct nodepool *p, enum disruption_reason reason,
                       const struct budget_count *n, int64_t now)
{
    int64_t least = n->nodes;

    for (uint32_t i = 0; i < p->n_budgets; i++) {
        const struct disruption_budget *b = &p->budgets[i];
        bool broken;

        if (!(b->reasons & (unsigned)reason))
            continue;
        if (budget_active(b, now, &broken))
            least = MIN(least, budget_nodes(b, n->nodes));
        else if (broken)
            least = 0;
    }
    return MAX(least - n->disrupting, 0);
}
