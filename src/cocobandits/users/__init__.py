"""Users as a study knows them: contexts and sums of rewards, for all policies and populations."""
