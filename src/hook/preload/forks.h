#pragma once

namespace spillway {

// From now on a fork of another thread waits until forks may go on, 5 s at most; those that have begun are over, unless
// they take longer than that.
void hold_forks() noexcept;
void let_forks_go_on() noexcept;

}  // namespace spillway
