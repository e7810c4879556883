#include "bind.hpp"

namespace KS_MODULE {

void bind_selection(nb::module_&) {}

}  // namespace KS_MODULE
