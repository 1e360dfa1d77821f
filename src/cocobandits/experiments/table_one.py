"""The six criteria of the paper's Table 1, and the test of each in `tests/contracts/`.

A test tries its criterion on every policy, and the policy's record has to agree with it. Where the
paper's own table says otherwise, the page of the comparison shows both.
"""

CRITERIA = {
    "MT": "test_a_newcomer_is_given_what_was_best_for_others",
    "PC": "test_one_arm_informs_about_another_by_the_hidden_kind",
    "NPLRS": "test_two_modes_are_believed_in",
    "UD": "test_uncertainties_are_separated",
    "DR": "test_somebody_can_join_at_any_time",
    "CI": "test_users_learn_from_each_other_while_they_are_served",
}
