// Stands where libspillway_preload.so does, and says so to the shell that it is loaded into.
#include <stdlib.h>

namespace {
[[gnu::constructor]] void loaded() { ::setenv("STAND_IN_LOADED", "yes", 1); }
}  // namespace
