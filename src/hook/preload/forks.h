#pragma once

namespace spillway {

// From now on a fork() of another thread waits until forks may go on, for 5 s at most. When this returns, those that
// had begun are over, unless that took longer than 2 s.
void hold_forks() noexcept;
void let_forks_go_on() noexcept;

}  // namespace spillway
