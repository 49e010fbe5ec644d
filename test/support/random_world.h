/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Random small worlds, as manifests and a catalogue, for properties of the solver. */
#ifndef TEST_SUPPORT_RANDOM_WORLD_H
#define TEST_SUPPORT_RANDOM_WORLD_H

#include "base/rng.h"
#include "cmd/manifests.h"

struct random_world {
    struct buf documents[64]; /* one manifest each, JSON */
    size_t n_documents;
    struct buf catalog;
    struct manifests manifests;
    struct catalog *offers;
    struct world *world;
};

struct random_world_options {
    unsigned pods_max, types_max, nodes_max;
    bool plain;          /* resources only: no labels, taints, ports, topology, limits, weights */
    int64_t price_times; /* prices times this; 0: 1 */
    bool dominated;      /* adds a type that is dearer and smaller than another */
};

/* The same seed and options give the same documents. */
void random_world_make(struct random_world *r, uint64_t seed, const struct random_world_options *o);
/* Reads the documents in an order that depends on `shuffle` (0: as made) and builds the world. */
void random_world_build(struct random_world *r, uint64_t shuffle);
void random_world_release(struct random_world *r);

#endif
