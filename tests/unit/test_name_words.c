#include "shard/stats/name_words.h"
#include "tests/unit/unit.h"

static void only_whole_words_count(void **state)
{
    static const struct {
        const char *name, *word;
        bool has;
    } cases[] = {
        {"jit_train_step(3)", "train", true},
        {"TrainStep", "train", true},
        {"evalTrain", "train", true},
        {"TRAIN2", "train", true},
        {"jit_constrain", "train", false},
        {"Trainable", "train", false},
        {"XLADecode", "decode", true},
        {"jit_decoder_eval", "decode", false},
        {"Restrained", "train", false},
        {"trai", "train", false},
        {"", "train", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (name_has_word(xp_span_str(cases[i].name), cases[i].word) != cases[i].has)
            fail_msg("%s: %s", cases[i].name, cases[i].word);
}

static void files_are_not_decoded_into_tokens(void **state)
{
    (void)state;
    assert_true(name_says_decode(XP_SPAN_LIT("jit_decode_step")));
    assert_true(name_says_decode(XP_SPAN_LIT("jit_generate")));
    assert_false(name_says_decode(XP_SPAN_LIT("jit_decode_jpeg")));
    assert_false(name_says_decode(XP_SPAN_LIT("DecodePng")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_words_count),
        cmocka_unit_test(files_are_not_decoded_into_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
