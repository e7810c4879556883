#include "bind.hpp"

namespace KS_MODULE {

void bind_adaptive(nb::module_&) {}

}  // namespace KS_MODULE
