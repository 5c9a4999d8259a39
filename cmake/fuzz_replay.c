/* cmake/fuzz_replay.c - runs a fuzzer's kept corpus without libFuzzer: every file of the folders
 * (or the files) named on the command line, once each. A crash or a sanitizer's report fails. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    struct stat st;
    int bad = fstat(fileno(f), &st) != 0;
    /* Exactly as long as the input, so that ASan sees a read past its end. */
    uint8_t *data = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
    size_t n = 0;
    if (!bad && data) {
        n = fread(data, 1, (size_t)st.st_size, f);
        LLVMFuzzerTestOneInput(data, n);
    }
    free(data);
    fclose(f);
    return bad;
}

static int replay_folder(const char *path, int *count)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, NULL, alphasort);
    int bad = 0;
    for (int i = 0; i < n; i++) {
        char full[4096];
        if (names[i]->d_name[0] != '.') {
            snprintf(full, sizeof full, "%s/%s", path, names[i]->d_name);
            bad |= replay_file(full);
            (*count)++;
        }
        free(names[i]);
    }
    free(names);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0, count = 0;
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) != 0) {
            printf("%s: no corpus yet\n", argv[i]);
            continue;
        }
        if (S_ISDIR(st.st_mode)) {
            bad |= replay_folder(argv[i], &count);
        } else {
            bad |= replay_file(argv[i]);
            count++;
        }
    }
    printf("%d inputs replayed\n", count);
    return bad;
}
