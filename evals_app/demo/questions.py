"""The questions of the demo dataset, with the answers that people expect and the pages that contain them."""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """A question of a customer, its answer, and the page of the help centre to cite."""

    text: str
    answer: str
    page: str


QUESTIONS = [
    Question("Where is my parcel?", "The link in the dispatch e-mail shows where it is.", "Tracking"),
    Question(
        "My parcel has been at the depot for six days.", "We ask the carrier and reply within a day.", "Tracking"
    ),
    Question("The tracking number does not work.", "It works about six hours after the dispatch.", "Tracking"),
    Question("Can you deliver to a parcel locker?", "Yes, within Germany and Austria.", "Delivery"),
    Question("Do you ship to Iceland?", "Yes, in five to eight working days.", "Delivery"),
    Question("How much is delivery?", "It is free from 50 euros, and 4.90 euros below.", "Delivery"),
    Question("Can I choose the day of delivery?", "Yes, at the checkout, from Tuesday to Saturday.", "Delivery"),
    Question("Nobody was at home. What now?", "The carrier tries again the next day.", "Delivery"),
    Question("Can somebody else accept the parcel?", "Yes, with the name that you enter in the order.", "Delivery"),
    Question("Please change my delivery address.", "You can change it until the parcel is packed.", "Orders"),
    Question("Can I add an item to my order?", "No, but a second order ships in the same parcel.", "Orders"),
    Question("I want to cancel my order.", "You can cancel it until it is packed.", "Orders"),
    Question("I ordered twice by mistake.", "We cancel the second order if you tell us today.", "Orders"),
    Question("Did you receive my order?", "The confirmation comes by e-mail within ten minutes.", "Orders"),
    Question("Can I order by phone?", "Yes, on working days from nine to five.", "Orders"),
    Question("How do I return a lamp?", "Print the label in your account, within 30 days.", "Returns"),
    Question("The box is open. Can I return it?", "Yes, if the lamp itself was not used.", "Returns"),
    Question("Who pays for the return?", "We do, within the European Union.", "Returns"),
    Question("When do I get my money back?", "Five working days after the return arrives.", "Returns"),
    Question("I lost the return label.", "You can print it again in your account.", "Returns"),
    Question("Can I exchange it for another colour?", "Return it and order the other colour.", "Returns"),
    Question("The lamp arrived with a broken switch.", "We send a new switch, or a new lamp.", "Warranty"),
    Question("The glass is cracked.", "Send us a photo and we replace the glass.", "Warranty"),
    Question("How long is the warranty?", "Three years from the day of delivery.", "Warranty"),
    Question("Is the bulb part of the warranty?", "No, a bulb can be replaced for 6 euros.", "Warranty"),
    Question("It hums when it is dimmed.", "Use a dimmer for LEDs; we recommend two models.", "Warranty"),
    Question("I need an invoice for my company.", "Enter the company in your account and download it.", "Invoices"),
    Question("How do I change the address on my invoice?", "In your account, until 14 days later.", "Invoices"),
    Question("The VAT number is missing.", "Add it in your account and download the invoice again.", "Invoices"),
    Question("Can I pay by invoice?", "Yes, from the second order, within 14 days.", "Payment"),
    Question("My card was refused.", "Ask your bank to allow 3-D Secure, then try again.", "Payment"),
    Question("Do you accept vouchers of other shops?", "No, only our own.", "Payment"),
    Question("Where do I enter a voucher?", "In the cart, below the sum.", "Payment"),
    Question("I was charged twice.", "One of both is a reservation, which ends within three days.", "Payment"),
    Question("How do I change my password?", "With the link on the sign-in page.", "Account"),
    Question("Please delete my account.", "You can do so in your account; orders stay ten years.", "Account"),
    Question("I do not get your e-mails.", "Look in the spam folder, or change the address.", "Account"),
    Question("Can I have two accounts?", "Yes, with different e-mail addresses.", "Account"),
    Question("Which bulb fits the reading lamp?", "E14, at most 8 watts.", "Products"),
    Question("Is the garden lamp waterproof?", "It withstands rain, but not a pond (IP44).", "Products"),
]
