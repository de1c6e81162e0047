package gate

import "flag"

// update writes the files of testdata that are generated.
var update = flag.Bool("update", false, "write the tables of testdata again")
