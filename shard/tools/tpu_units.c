#include "shard/tools/tpu_units.h"

#include <string.h>

static const struct tpu_unit units[] = {
#define UNIT(name, meaning, counters) {name, meaning, counters},
#include "shard/tools/tpu_units.def"
#undef UNIT
};

const struct tpu_unit *tpu_unit_of(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    return NULL;
}
