"""A handbook of a small hotel: sections with a question for each, in other words than those of the section."""

SECTIONS = [
    (
        "Arrival",
        "Rooms are ready from three in the afternoon. Guests who come sooner may leave their luggage at reception.",
        "When can I check in?",
    ),
    (
        "Departure",
        "Please vacate your room by eleven. Staying until two costs twenty euros.",
        "What is the latest check-out time?",
    ),
    (
        "Breakfast",
        "The buffet is served from seven until ten, on Sundays until eleven, in the garden hall.",
        "Where and when do we eat in the morning?",
    ),
    (
        "Parking",
        "Cars can be left in the courtyard for nine euros a night. The gate closes at midnight.",
        "Is there a place for my car?",
    ),
    (
        "Charging",
        "Two stations for electric vehicles stand beside the gate. A charge is billed by kilowatt hour.",
        "Can I load the battery of my electric car?",
    ),
    (
        "Internet",
        "Wireless network is free in all rooms. The password is printed on the key card.",
        "How do I get online?",
    ),
    (
        "Pets",
        "Dogs are welcome for ten euros a night. They are not allowed in the dining room.",
        "May I bring my dog?",
    ),
    (
        "Smoking",
        "Smoking is forbidden in the whole building. Ashtrays are on the terrace.",
        "Where can I have a cigarette?",
    ),
    (
        "Pool",
        "The swimming pool is open from eight to eight. Children under twelve need an adult.",
        "What are the opening hours of the swimming bath?",
    ),
    ("Sauna", "The sauna is heated on request. Ask at reception one hour ahead.", "How do I get the sauna warmed up?"),
    ("Gym", "The fitness room in the basement is open day and night with your key card.", "Where can I lift weights?"),
    (
        "Laundry",
        "Bags of clothes that are handed in before nine come back washed the same evening.",
        "How do I have my shirts cleaned?",
    ),
    ("Ironing", "An iron and a board are in the cupboard on each floor.", "Where do I find an iron?"),
    (
        "Safe",
        "Each wardrobe contains a safe. Choose four digits, then press the star.",
        "How do I lock up my valuables?",
    ),
    (
        "Lost key",
        "A lost key card is blocked at once and replaced for five euros.",
        "I lost my card for the door. What now?",
    ),
    (
        "Heating",
        "The thermostat beside the door sets the temperature between sixteen and twenty-four degrees.",
        "It is too cold in my room. How do I make it warmer?",
    ),
    ("Air conditioning", "Cooling switches off while a window is open.", "Why does the cooling stop?"),
    (
        "Minibar",
        "Drinks in the small refrigerator are listed with their prices. They are added to your bill.",
        "Do the drinks in the fridge cost anything?",
    ),
    (
        "Room service",
        "Meals are brought to your room until ten in the evening. Dial nine.",
        "How do I order dinner to my room?",
    ),
    (
        "Restaurant",
        "The restaurant serves supper from six. Reserve a table before noon.",
        "Do I have to book a table for supper?",
    ),
    (
        "Vegetarians",
        "Half of the dishes contain neither meat nor fish; vegan ones are marked with a leaf.",
        "Is there food for vegans?",
    ),
    (
        "Allergies",
        "Tell the kitchen which ingredients you must avoid. A list of allergens hangs beside the buffet.",
        "I cannot eat nuts. Whom should I tell?",
    ),
    (
        "Children's beds",
        "A cot is free; an extra bed for older children costs fifteen euros.",
        "Can our baby have a bed of its own?",
    ),
    (
        "Babysitting",
        "A sitter looks after children from six in the evening, if booked a day ahead.",
        "Who can watch the kids tonight?",
    ),
    ("Playground", "Swings and a sandbox are behind the orchard.", "Where can the children play outside?"),
    ("Bicycles", "Bicycles and helmets are rented by the hour at the front desk.", "Can I rent a bike?"),
    (
        "Hiking",
        "Three marked trails begin at the chapel. The longest takes five hours.",
        "Which walks are there nearby?",
    ),
    (
        "Skiing",
        "The lift is ten minutes away by bus. Skis dry overnight in the heated cellar.",
        "Where do I put my wet skis?",
    ),
    (
        "Bus",
        "The bus to the town centre stops at the corner every twenty minutes.",
        "How often does public transport go downtown?",
    ),
    (
        "Taxi",
        "Reception orders a taxi; a ride to the airport costs about forty euros.",
        "What does a cab to the airport cost?",
    ),
    (
        "Train",
        "The railway station is two kilometres away. Our van picks you up for free.",
        "Who collects us from the railway station?",
    ),
    ("Payment", "We accept cash, debit and credit cards. Cheques are not taken.", "Can I pay with a credit card?"),
    (
        "Invoice",
        "If a company pays, give us its address before you leave, so that the invoice is right.",
        "I need a bill for my employer.",
    ),
    (
        "Deposit",
        "A fifth of the price is due when you book. It is returned if you cancel in time.",
        "How much must be paid in advance?",
    ),
    (
        "Cancellation",
        "Cancel up to seven days before arrival without charge. Later you pay one night.",
        "Can I withdraw my booking for free?",
    ),
    (
        "Changes of dates",
        "Reservations can be moved to other days once, if rooms are free.",
        "We want to come a week later instead.",
    ),
    ("Groups", "From ten people on, every eleventh guest stays free.", "Is there a discount for large parties?"),
    (
        "Meetings",
        "The library seats twenty and has a projector and a whiteboard.",
        "Do you have a conference room with a beamer?",
    ),
    (
        "Weddings",
        "The orangery is let for celebrations of up to eighty guests, with music until one.",
        "Could we marry at your place?",
    ),
    (
        "Accessibility",
        "A ramp leads to the entrance. Two ground-floor rooms have wide doors and grab rails.",
        "Is the house suitable for a wheelchair?",
    ),
    ("Lift", "The elevator reaches all floors but the attic.", "Do I have to take the stairs?"),
    ("Doctor", "A physician lives opposite. At night dial one one two.", "I feel sick. Where is medical help?"),
    (
        "Pharmacy",
        "The nearest chemist is on the market square; one is open at night in turn.",
        "Where can I buy medicine?",
    ),
    (
        "Fire",
        "If the alarm sounds, leave by the stairs and gather at the fountain.",
        "What should we do in case of fire?",
    ),
    ("Noise", "Quiet is kept from ten at night until six in the morning.", "When must we be silent?"),
    ("Towels", "Towels on the floor are exchanged; those on the rail are used again.", "How do I get fresh towels?"),
    (
        "Lost property",
        "Forgotten things are stored for six months and sent on for the postage.",
        "I left my jacket behind. Do you still have it?",
    ),
    (
        "Mail",
        "Letters and stamps are taken at the front desk; the box is emptied at five.",
        "Where can I post a card?",
    ),
    (
        "Newspapers",
        "Daily papers lie in the lounge. Others are ordered the evening before.",
        "Can I read a newspaper?",
    ),
    ("Gift vouchers", "Vouchers of any amount are valid for three years.", "How long can a gift card be used?"),
]
