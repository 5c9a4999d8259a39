#include "server/gate.h"

const struct who who_local = {.kind = WHO_LOCAL, .subject = "", .email = ""};
const struct who who_nobody = {.kind = WHO_NOBODY, .subject = "", .email = ""};

const struct who *who_ref(const struct who *w)
{
    return w;
}

void who_unref(const struct who *w)
{
    (void)w;
}

const char *who_name(const struct who *w)
{
    return w->kind == WHO_LOCAL ? "local" : "nobody";
}
